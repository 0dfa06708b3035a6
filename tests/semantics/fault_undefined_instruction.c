#include "sem.h"
static volatile long off; static volatile int code;
static void h(int s, siginfo_t *i, void *c) {
    greg_t *g = ((ucontext_t *)c)->uc_mcontext.gregs;
    code = i->si_code;
    off = (char *)i->si_addr - (char *)g[REG_RIP];
    g[REG_RIP] += 2;
}
int main(void) {
    on(SIGILL, h, 0);
    __asm__ volatile("ud2");
    printf("%d %ld\n", code, off);
    __asm__ volatile(".byte 0x0f, 0xff");
    printf("%d %ld\n", code, off);
    __asm__ volatile(".byte 0x06, 0x90");
    printf("%d %ld\n", code, off);
}
