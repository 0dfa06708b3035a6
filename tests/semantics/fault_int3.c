#include "sem.h"
static volatile int n, code; static unsigned char *volatile at;
static void h(int s, siginfo_t *i, void *c) { n++; code = i->si_code; at = (unsigned char *)((ucontext_t *)c)->uc_mcontext.gregs[REG_RIP]; }
int main(void) {
    on(SIGTRAP, h, 0);
    for (int i = 0; i < 3; i++) { __asm__ volatile("int3"); printf("%d %d %x\n", n, code, at[-1]); }
    __asm__ volatile("int $3");
    printf("%d %d %x\n", n, code, at[-1]);
}
