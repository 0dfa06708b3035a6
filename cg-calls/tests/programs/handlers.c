// cc: -O1 -I../../../tests/programs -fno-optimize-sibling-calls
// Signal handlers that call, that recurse, on their own stack.
#include "rt.h"
#define NOINLINE __attribute__((noinline, noclone))
static volatile i64 sink;
static i64 pid;
NOINLINE i64 fib(i64 n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
NOINLINE void raise(int sig) { SYS2(NR_kill, pid, sig); }
static void calls(int sig, void *info, void *context) { sink += fib(4); }
static void outer(int sig, void *info, void *context) { sink += fib(3); raise(12); sink += fib(2); }
static void inner(int sig, void *info, void *context) { sink += fib(5); }
NOINLINE void busy(int n) { if (n) busy(n - 1); else raise(10); sink++; }
static u8 other[16384];
int run(i64 *stack) {
    pid = SYS1(NR_getpid, 0);
    handle(10, calls, 0);
    raise(10);
    busy(3);
    handle(10, outer, 0);
    handle(12, inner, 0);
    busy(2);
    struct { void *sp; u64 flags, size; } alt = {other, 0, sizeof other};
    SYS2(NR_sigaltstack, &alt, 0);
    handle(15, calls, 0x08000000);
    raise(15);
    print("handlers", sink);
    return 0;
}
