// cc: -O1
// oracle: valgrind
// ignore: join
// Raw clone threads that compute in parallel, with a futex to wait for their end and an atomic sum.
#include "rt.h"
static u8 stacks[4][16384] __attribute__((aligned(16)));
static volatile u32 alive[4];
static u64 results[4], shared;
__attribute__((noinline)) static u64 work(u64 seed) {
    u64 h = seed;
    for (int i = 0; i < 20000; i++) h = hash(h, i), __atomic_fetch_add(&shared, i, __ATOMIC_RELAXED);
    return h;
}
__attribute__((used)) static void body(u64 index) {
    results[index] = work(index + 1);
    SYS1(NR_exit, 0);
    __builtin_unreachable();
}
i64 spawn(u64 flags, void *stack, volatile u32 *tid, u64 index);
__asm__(".globl spawn\n.type spawn, @function\nspawn: mov %rcx, %r9\nmov %rdx, %r10\nmov $56, %eax\nsyscall\n"
        "test %rax, %rax\njz 1f\nret\n1: mov %r9, %rdi\ncall body\nhlt\n.size spawn, . - spawn");
__attribute__((noinline)) static void join(int i) {
    for (u32 tid; (tid = alive[i]);) SYS4(NR_futex, &alive[i], 0, tid, 0);
}
int run(i64 *stack) {
    // VM, FS, FILES, SIGHAND, THREAD, SYSVSEM, CHILD_CLEARTID
    for (u64 i = 0; i < 4; i++) alive[i] = 1, spawn(0x250f00, stacks[i] + 16384, &alive[i], i);
    // The word holds 1 until the kernel clears it.
    for (int i = 0; i < 4; i++) join(i);
    u64 h = shared;
    for (int i = 0; i < 4; i++) h = hash(h, results[i]);
    print("threads", h);
    return 0;
}
