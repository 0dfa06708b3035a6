// cc: -O1
// Signals sent to itself: handlers, nesting, masks, alternate stack, handlers that change the context, raw rt_sigreturn.
#include "rt.h"
static volatile u64 seen;
static volatile int depth;
static void simple(int sig, void *info, void *context) { seen = hash(seen, sig); }
static void nested(int sig, void *info, void *context) {
    seen = hash(seen, 100 + sig + depth);
    if (++depth < 4) SYS2(NR_kill, SYS1(NR_getpid, 0), depth & 1 ? 12 : 10);
    depth--;
}
static void changer(int sig, void *info, void *context) {
    u64 *words = context;
    words[UC_RBX] = 0x1234;
    seen = hash(seen, words[UC_RDX]);
}
static void on_other_stack(int sig, void *info, void *context) {
    char here;
    seen = hash(seen, (u64)&here > ((u64 *)context)[UC_RSP]);
}
static u8 other[16384];
__attribute__((noinline)) static u64 send_and_look(void) {
    u64 rbx = 1;
    i64 pid = SYS1(NR_getpid, 0);
    __asm__ volatile("mov $62, %%eax\nsyscall" : "+b"(rbx) : "D"(pid), "S"(14), "d"(99)
                     : "rax", "rcx", "r11", "memory");
    return rbx;
}
int run(i64 *stack) {
    handle(10, simple, 0);
    i64 pid = SYS1(NR_getpid, 0);
    for (int i = 0; i < 20; i++) SYS2(NR_kill, pid, 10);
    print("simple", seen);
    handle(10, nested, 0x40000000);
    handle(12, nested, 0x40000000);
    SYS2(NR_kill, pid, 10);
    print("nested", seen);
    u64 mask = 1 << 9 | 1 << 11;
    SYS4(NR_rt_sigprocmask, 0, &mask, 0, 8);
    SYS2(NR_kill, pid, 10);
    print("masked", seen);
    SYS4(NR_rt_sigprocmask, 1, &mask, 0, 8);
    print("unmasked", seen);
    handle(14, changer, 0);
    print("changed", send_and_look());
    struct {
        void *sp;
        u64 flags, size;
    } alt = {other, 0, sizeof other};
    SYS2(NR_sigaltstack, &alt, 0);
    handle(15, on_other_stack, 0x08000000);
    SYS2(NR_kill, pid, 15);
    print("altstack", seen);
    return 0;
}
