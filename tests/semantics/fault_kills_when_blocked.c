#include "sem.h"
static void h(int s, siginfo_t *i, void *c) { _exit(3); }
int main(void) {
    on(SIGSEGV, h, 0);
    sigset_t m;
    sigfillset(&m);
    sigprocmask(SIG_BLOCK, &m, 0);
    *(volatile int *)8 = 1;
}
