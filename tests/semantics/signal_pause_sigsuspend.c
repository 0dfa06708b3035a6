#include "sem.h"
static volatile int n;
static void h(int s, siginfo_t *i, void *c) { n++; }
int main(void) {
    on(SIGALRM, h, 0);
    sigset_t m, old;
    sigemptyset(&m), sigaddset(&m, SIGALRM);
    sigprocmask(SIG_BLOCK, &m, &old);
    every(1000);
    for (int i = 0; i < 100; i++) { CHECK(sigsuspend(&old) == -1 && errno == EINTR); }
    every(0);
    printf("%d\n", n >= 100);
    sigprocmask(SIG_SETMASK, &old, 0);
    alarm(1);
    printf("%d\n", pause());
}
