// cc: -O1 -gdwarf-4 -fno-optimize-sibling-calls
// Signal handlers that miss what is simulated. They change over to a stack at a fixed place, since each kernel and the
// reference build frames of their own sizes.
#include "../cache/cache.h"
#define NOINLINE __attribute__((noinline, noclone))
enum { WORDS = 4096 };
static u64 words[WORDS];
u8 handler_stack[16384] __attribute__((aligned(4096)));
static volatile u64 sink;

static i64 call(i64 nr, i64 a, i64 b, i64 c, i64 d) {
    i64 result;
    register i64 r10 __asm__("r10") = d;
    __asm__ volatile("syscall" : "=a"(result) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
    return result;
}
NOINLINE u64 touch(u64 from, u64 step, u64 n) {
    u64 sum = 0;
    for (u64 i = 0; i < n; i++, from = (from + step) % WORDS) {
        sum += words[from];
        if (sum & 5) words[from] = sum;
    }
    return sum;
}
NOINLINE void raise(i64 sig) { call(62, call(39, 0, 0, 0, 0), sig, 0, 0); }
NOINLINE u64 fib(u64 n) { return n < 2 ? touch(n * 700, 8, 3) : fib(n - 1) + fib(n - 2); }
__attribute__((used)) void first(void) { sink += touch(900, 60, 20) + fib(3); }
__attribute__((used)) void second(void) { sink += touch(1300, 3, 50); }
void handle_first(void), handle_second(void), restore(void);
__asm__(".text\n.globl handle_first\n.type handle_first, @function\nhandle_first:\nmov %rsp, %r12\n"
        "lea handler_stack+16000(%rip), %rsp\ncall first\nmov %r12, %rsp\nret\n.size handle_first, . - handle_first\n"
        ".globl handle_second\n.type handle_second, @function\nhandle_second:\nmov %rsp, %r12\n"
        "lea handler_stack+8000(%rip), %rsp\ncall second\nmov %r12, %rsp\nret\n.size handle_second, . - handle_second\n"
        ".globl restore\n.type restore, @function\nrestore: mov $15, %eax\nsyscall\n.size restore, . - restore\n");
static void handle(i64 sig, void (*with)(void)) {
    struct { void (*with)(void); u64 flags; void (*restore)(void); u64 mask; } action = {with, 0x04000000, restore, 0};
    call(13, sig, (i64)&action, 0, 8);
}
NOINLINE u64 busy(u64 n) { return n == 0 ? (raise(10), 1) : busy(n - 1) + touch(n * 100, 9, 9); }
int run(void) {
    handle(10, handle_first);
    handle(12, handle_second);
    u64 sum = busy(3);
    raise(12);
    sum += fib(5);
    raise(10);
    return sum == 12345;
}
