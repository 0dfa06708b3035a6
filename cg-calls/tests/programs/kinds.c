// cc: -O1 -I../../../tests/programs -fno-optimize-sibling-calls
// Calls of every kind: recursion, mutual recursion, tail calls, pointers, callbacks, jumps out of several frames.
#include "rt.h"
#define NOINLINE __attribute__((noinline, noclone))
typedef int (*compare)(const i64 *, const i64 *);
static volatile i64 sink;
static i64 buffer[8];

// rdi: buffer. Saves what the caller may rely on.
int set_jump(i64 *buffer);
void long_jump(i64 *buffer, int value);
__asm__(".text\n.globl set_jump\n.type set_jump, @function\nset_jump:\n"
        "mov %rbx, (%rdi)\nmov %rbp, 8(%rdi)\nmov %r12, 16(%rdi)\nmov %r13, 24(%rdi)\nmov %r14, 32(%rdi)\nmov %r15, 40(%rdi)\n"
        "lea 8(%rsp), %rdx\nmov %rdx, 48(%rdi)\nmov (%rsp), %rdx\nmov %rdx, 56(%rdi)\nxor %eax, %eax\nret\n"
        ".size set_jump, . - set_jump\n"
        ".globl long_jump\n.type long_jump, @function\nlong_jump:\n"
        "mov %esi, %eax\nmov (%rdi), %rbx\nmov 8(%rdi), %rbp\nmov 16(%rdi), %r12\nmov 24(%rdi), %r13\nmov 32(%rdi), %r14\n"
        "mov 40(%rdi), %r15\nmov 48(%rdi), %rsp\njmp *56(%rdi)\n.size long_jump, . - long_jump\n"
        // Tail calls: to another function, to itself, by falling through, and through a pointer.
        ".type count_down, @function\ncount_down:\ntest %edi, %edi\nje 1f\ndec %edi\njmp count_down\n1: jmp leaf\n.size count_down, . - count_down\n"
        ".type falls, @function\nfalls:\nadd $1, %edi\njs leaf\n.size falls, . - falls\n"
        ".type leaf, @function\nleaf:\nlea 3(%rdi), %eax\nret\n.size leaf, . - leaf\n"
        ".type ping, @function\nping:\ntest %edi, %edi\nje leaf\ndec %edi\njmp pong\n.size ping, . - ping\n"
        ".type pong, @function\npong:\ntest %edi, %edi\nje leaf\ndec %edi\njmp ping\n.size pong, . - pong\n"
        ".type pushed, @function\npushed:\nlea leaf(%rip), %rax\npush %rax\nret\n.size pushed, . - pushed\n"
        ".type popper, @function\npopper:\npop %rdx\ncall leaf\njmp *%rdx\n.size popper, . - popper\n");
int count_down(int), falls(int), ping(int), pong(int), pushed(int), popper(int), leaf(int);

NOINLINE i64 fib(i64 n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
NOINLINE i64 ackermann(i64 m, i64 n) {
    if (m == 0) return n + 1;
    return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
i64 odd(i64 n);
NOINLINE i64 even(i64 n) { return n == 0 ? 1 : odd(n - 1) + 0 * sink; }
NOINLINE i64 odd(i64 n) { return n == 0 ? 0 : even(n - 1) + 0 * sink; }
NOINLINE int up(const i64 *a, const i64 *b) { return *a < *b ? -1 : *a > *b; }
NOINLINE int down(const i64 *a, const i64 *b) { return up(b, a); }
NOINLINE void sort(i64 *from, i64 n, compare less) {
    if (n < 2) return;
    i64 pivot = from[n / 2], i = 0, j = n - 1;
    while (i <= j) {
        while (less(&from[i], &pivot) < 0) i++;
        while (less(&pivot, &from[j]) < 0) j--;
        if (i <= j) { i64 t = from[i]; from[i++] = from[j]; from[j--] = t; }
    }
    sort(from, j + 1, less);
    sort(from + i, n - i, less);
}
NOINLINE void throw_at(int depth) {
    if (depth == 0) long_jump(buffer, 7);
    if (depth != -1) throw_at(depth - 1);
    sink++;
}
NOINLINE int catcher(int depth) {
    int got = set_jump(buffer);
    if (got == 0) { throw_at(depth); sink = 99; }
    return got + leaf(1);
}
NOINLINE int in_same(int depth) {
    volatile int tries = 0;
    set_jump(buffer);
    if (tries++ < 3) throw_at(depth + tries);
    return tries;
}
int run(i64 *stack) {
    i64 numbers[40], sum = 0;
    for (int i = 0; i < 40; i++) numbers[i] = i * 7919 % 101;
    sort(numbers, 40, up);
    sort(numbers, 40, down);
    sum += fib(9) + ackermann(2, 3) + even(9) + odd(6) + fib(3);
    for (int i = 0; i < 4; i++) {
        int (*pointers[])(int) = {count_down, falls, ping, pong, pushed, popper};
        for (int p = 0; p < 6; p++) sum += pointers[p](i + p);
    }
    for (int i = 0; i < 4; i++) sum += catcher(i) + in_same(i);
    print("kinds", sum + numbers[3]);
    return 0;
}
