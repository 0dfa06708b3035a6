// Many contexts, deep nesting, pops too many, requests that point nowhere. work(n) runs in context n (or as its comment says).
#include "cachegrind.h"
#define APART __attribute__((noinline))
static volatile unsigned total;
APART static void work(unsigned n) {
    for (unsigned i = 0; i < n; i++) total += i;
}
// Descends through contexts 1, 2, 3, 1, ... to the depth, and works on the way back.
APART static void nest(unsigned depth) {
    CG_PUSH_CONTEXT(depth % 3 + 1);
    if (depth) nest(depth - 1);
    work(depth % 3 + 1);
    CG_POP_CONTEXT();
}
int main(void) {
    CG_POP_CONTEXT();
    CG_POP_CONTEXT();
    work(10); // context 0
    // More contexts than a thread has slots, each twice, far apart.
    for (unsigned round = 0; round < 2; round++)
        for (unsigned n = 100; n < 1500; n++) {
            CG_PUSH_CONTEXT(n);
            work(n);
            CG_POP_CONTEXT();
        }
    // The same place in the table.
    for (unsigned i = 0; i < 300; i++) {
        unsigned long n = i % 2 ? 0x1000000000 : 0x2000000000;
        CG_PUSH_CONTEXT(n);
        work(i % 2 ? 3 : 5);
        CG_POP_CONTEXT();
    }
    nest(1999);
    // The same context once more is no change, but it counts for the stack.
    CG_PUSH_CONTEXT(4);
    CG_PUSH_CONTEXT(4);
    CG_POP_CONTEXT();
    work(4);
    CG_POP_CONTEXT();
    // By name: the same name is the same context.
    for (int i = 0; i < 3; i++) {
        CG_PUSH_CONTEXT_NAMED("alpha");
        work(7);
        CG_PUSH_CONTEXT_NAMED("beta/2 x");
        work(8);
        CG_POP_CONTEXT();
        CG_POP_CONTEXT();
    }
    CG_PUSH_CONTEXT_NAMED("alpha");
    work(9);
    CG_POP_CONTEXT();
    // Natively, nothing is read from where rax points: neither nowhere, nor to the last bytes of a page.
    char *end = (char *)__builtin_alloca(16384);
    end = (char *)(((unsigned long)end + 8191) & ~4095ul);
    for (long at = 0; at < 2; at++) {
        unsigned long flags, kept;
        __asm__ volatile("stc\n\tpushf\n\tpop %0\n\t"
                         "rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx\n\t"
                         "pushf\n\tpop %1"
                         : "=&r"(flags), "=&r"(kept)
                         : "a"(at ? ~0ul << 40 : 0), "d"(0ul)
                         : "cc", "memory");
        if ((flags ^ kept) & 0xd4) return 1;
    }
    (void)end;
    CG_POP_CONTEXT();
    work(11); // context 0
    return 0;
}
