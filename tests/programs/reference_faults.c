// cc: -O1
// oracle: steps
// Faults whose handlers mend the context and go on: SEGV, FPE, ILL, TRAP. What precedes the fault in its block was executed
// and counts; the reference loses it (S9), so counts come from single-stepping.
#include "rt.h"
static volatile u64 seen;
static u64 landing, base;
static void skip(int sig, void *info, void *context) {
    u64 *words = context;
    seen = hash(seen, sig + ((int *)info)[2] * 64);
    seen = hash(seen, words[UC_RIP] - base);
    seen = hash(seen, words[UC_RCX]);
    if (sig == 11 || sig == 7) seen = hash(seen, ((u64 *)info)[2]);
    if (sig == 8 || sig == 4) seen = hash(seen, ((u64 *)info)[2] - base);
    if (sig != 5) words[UC_RIP] = landing;
    words[UC_RDX] += 5;
    words[UC_FLAGS] |= 1;
}
// Instructions before the fault in the same block, then the fault, then where the handler sends it.
#define FAULT(name, bytes) \
    __attribute__((noinline)) static u64 name(u64 x) { \
        __asm__ volatile("lea 1f(%%rip), %%rax\nmov %%rax, %1\nlea 2f(%%rip), %%rax\nmov %%rax, %2\n" \
                         "clc\nmov $7, %%ecx\nadd $3, %%rdx\nxor %%eax, %%eax\n2: " bytes "\nud2\n1: adc $1, %%rdx" \
                         : "+d"(x), "=m"(landing), "=m"(base) : : "rax", "rcx", "cc", "memory"); \
        return x; \
    }
FAULT(load_null, "mov 64(%%rax), %%ecx")
FAULT(store_null, "incl (%%rax)")
FAULT(divide, "push %%rdx\nadd $8, %%rsp\ndiv %%eax")
FAULT(undefined, "ud2")
FAULT(jump_null, "mov %%rax, %%rcx\nmov (%%rax,%%rax), %%rcx")
FAULT(far_away, "inc %%ecx\ncmp %%ecx, 0x7ffff000\nnop")
__attribute__((noinline)) static u64 trap(u64 x) {
    __asm__ volatile("mov $9, %%ecx\nint3\nadd $1, %%rdx" : "+d"(x) : : "rcx", "cc", "memory");
    return x;
}
// A REP MOVS that faults in the middle: the iterations before it count, and rcx shows how far it came.
__attribute__((noinline)) static u64 copy_off_the_end(u8 *end) {
    u64 left;
    __asm__ volatile("lea 1f(%%rip), %%rax\nmov %%rax, %1\nlea 2f(%%rip), %%rax\nmov %%rax, %2\n"
                     "mov $100, %%ecx\n2: rep movsb\n1:" : "=c"(left), "=m"(landing), "=m"(base), "+S"(end)
                     : "D"(rt_data + 1) : "rax", "rdx", "cc", "memory");
    return left;
}
int run(i64 *stack) {
    handle(11, skip, 0);
    handle(8, skip, 0);
    handle(4, skip, 0);
    // Not blocked in its handler, or single-stepping would reset it.
    handle(5, skip, 0x40000000);
    handle(7, skip, 0);
    u64 (*tests[])(u64) = {load_null, store_null, divide, undefined, jump_null, far_away, trap};
    for (int round = 0; round < 5; round++)
        for (int i = 0; i < 7; i++) {
            u64 got = tests[i](i);
            if (round == 0 || round == 4) print("returned", got), print("seen", seen);
        }
    u8 *map = (u8 *)SYS6(NR_mmap, 0x10000000, 8192, 3, 0x32, -1, 0);
    SYS3(NR_mprotect, map + 4096, 4096, 0);
    static u64 room[8];
    (void)room;
    print("left", copy_off_the_end(map + 4096 - 5));
    print("seen", seen);
    return 0;
}
