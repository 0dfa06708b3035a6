#include "sem.h"
static void h(int s, siginfo_t *i, void *c) { printf("%d %d\n", s - SIGRTMIN, i->si_value.sival_int); }
int main(void) {
    sigset_t m;
    sigfillset(&m);
    sigprocmask(SIG_BLOCK, &m, 0);
    for (int k = 0; k < 4; k++) on(SIGRTMIN + k, h, 0);
    for (int k = 0; k < 20; k++) { union sigval v = {.sival_int = k}; sigqueue(getpid(), SIGRTMIN + (k * 7) % 4, v); }
    struct sigaction a;
    for (int k = 0; k < 4; k++) { sigaction(SIGRTMIN + k, 0, &a); sigfillset(&a.sa_mask); sigaction(SIGRTMIN + k, &a, 0); }
    sigprocmask(SIG_UNBLOCK, &m, 0);
}
