#include "sem.h"
static sigjmp_buf back;
static volatile int n;
static void h(int s, siginfo_t *i, void *c) { n++; siglongjmp(back, 1); }
int main(void) {
    on(SIGALRM, h, 0);
    if (sigsetjmp(back, 1) == 0) every(2000);
    while (n < 100) work(1000);
    every(0);
    sigset_t m;
    sigprocmask(0, 0, &m);
    printf("%d\n", sigismember(&m, SIGALRM));
}
