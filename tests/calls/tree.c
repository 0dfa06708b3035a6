// cc: -O1 -gdwarf-4 -fno-optimize-sibling-calls
// Calls of every kind, whose accesses, branches and indirect jumps miss what is simulated, on a stack at a fixed place.
#include "../cache/cache.h"
#define NOINLINE __attribute__((noinline, noclone))
enum { WORDS = 4096 };
static u64 words[WORDS], buffer[8];
static volatile u64 sink;

u64 set_jump(u64 *at);
void long_jump(u64 *at, u64 value);
u64 count_down(u64), ping(u64), pong(u64), leaf(u64);
__asm__(".text\n.globl set_jump\n.type set_jump, @function\nset_jump:\n"
        "mov %rbx, (%rdi)\nmov %rbp, 8(%rdi)\nmov %r12, 16(%rdi)\nmov %r13, 24(%rdi)\nmov %r14, 32(%rdi)\nmov %r15, 40(%rdi)\n"
        "lea 8(%rsp), %rdx\nmov %rdx, 48(%rdi)\nmov (%rsp), %rdx\nmov %rdx, 56(%rdi)\nxor %eax, %eax\nret\n"
        ".size set_jump, . - set_jump\n"
        ".globl long_jump\n.type long_jump, @function\nlong_jump:\n"
        "mov %rsi, %rax\nmov (%rdi), %rbx\nmov 8(%rdi), %rbp\nmov 16(%rdi), %r12\nmov 24(%rdi), %r13\nmov 32(%rdi), %r14\n"
        "mov 40(%rdi), %r15\nmov 48(%rdi), %rsp\njmp *56(%rdi)\n.size long_jump, . - long_jump\n"
        ".globl count_down\n.type count_down, @function\ncount_down:\ntest %rdi, %rdi\nje 1f\npush %rdi\npop %rdi\ndec %rdi\n"
        "jmp count_down\n1: jmp leaf\n.size count_down, . - count_down\n"
        ".globl leaf\n.type leaf, @function\nleaf:\nadd %rdi, words(,%rdi,8)\nlea 3(%rdi), %rax\nret\n.size leaf, . - leaf\n"
        ".globl ping\n.type ping, @function\nping:\ntest %rdi, %rdi\nje leaf\nincq words(,%rdi,8)\ndec %rdi\njmp pong\n"
        ".size ping, . - ping\n"
        ".globl pong\n.type pong, @function\npong:\ntest %rdi, %rdi\nje leaf\nmov words(,%rdi,8), %rax\ndec %rdi\njmp ping\n"
        ".size pong, . - pong\n");

NOINLINE u64 touch(u64 from, u64 step, u64 n) {
    u64 sum = 0;
    for (u64 i = 0; i < n; i++, from = (from + step) % WORDS) {
        sum += words[from];
        if (sum & 5) words[from] = sum;
    }
    return sum;
}
NOINLINE u64 fib(u64 n) { return n < 2 ? touch(n * 700, 8, 3) : fib(n - 1) + fib(n - 2); }
NOINLINE u64 odd(u64 n);
NOINLINE u64 even(u64 n) { return n == 0 ? touch(9, 9, 9) : odd(n - 1) + 1; }
NOINLINE u64 odd(u64 n) { return n == 0 ? touch(5, 64, 30) : even(n - 1) + 1; }
#ifdef STRINGS
NOINLINE u64 copy(u64 to, u64 from, u64 n) {
    void *d = words + to;
    void *s = words + from;
    __asm__ volatile("rep movsq" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
    return words[to];
}
NOINLINE u64 fill(u64 to, u64 value, u64 n) {
    void *d = words + to;
    __asm__ volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(value) : "memory");
    return touch(to, 3, 5);
}
NOINLINE u64 find(u64 from, u64 value, u64 n) {
    void *d = words + from;
    __asm__ volatile("repne scasb" : "+D"(d), "+c"(n) : "a"(value) : "memory", "cc");
    return n;
}
#else
#define copy touch
#define fill touch
#define find touch
#endif
NOINLINE u64 locked(u64 at, u64 n, u64 by) {
    while (n--) __sync_bool_compare_and_swap(&words[at], words[at], by);
    return words[at];
}
NOINLINE void throw_at(u64 depth) {
    if (depth == 0) long_jump(buffer, touch(2000, 80, 7) | 1);
    if (depth != ~0ul) throw_at(depth - 1);
    sink++;
}
NOINLINE u64 catcher(u64 depth) {
    if (set_jump(buffer) == 0) throw_at(depth);
    return leaf(depth);
}
typedef u64 (*three)(u64, u64, u64);
NOINLINE u64 through(three f, u64 a, u64 b, u64 c) { return f(a, b, c); }

int run(void) {
    static const three functions[] = {touch, copy, fill, find, touch, locked};
    u64 sum = fib(8) + even(20) + odd(31);
    u32 x = 1;
    for (u64 i = 0; i < 60; i++) {
        x = x * 1103515245 + 12345;
        sum += through(functions[(x >> 16) % 6], (x >> 8) % 2000, 40 + i % 9, 30 + (x >> 20) % 90);
        if (i % 5 == 0) sum += count_down(i / 5) + ping(i) + catcher(i / 10);
    }
    return sum == 12345;
}
