#include "sem.h"
static sigjmp_buf back;
static volatile int code, at_ok;
static void h(int s, siginfo_t *i, void *c) { code = i->si_code; at_ok = i->si_addr == (void *)((ucontext_t *)c)->uc_mcontext.gregs[REG_RIP]; siglongjmp(back, s); }
int main(void) {
    on(SIGFPE, h, 0);
    volatile int zero = 0, x = 5;
    int s = sigsetjmp(back, 1);
    if (s == 0) x /= zero;
    printf("%d %d %d\n", s, code, at_ok);
    x = 0x80000000;
    zero = -1;
    s = sigsetjmp(back, 1);
    if (s == 0) x /= zero;
    printf("%d %d %d\n", s, code, at_ok);
}
