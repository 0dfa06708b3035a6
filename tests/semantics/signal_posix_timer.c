#include "sem.h"
static volatile int n, code;
static void h(int s, siginfo_t *i, void *c) { n++; code = i->si_code; }
int main(void) {
    on(SIGRTMIN, h, 0);
    struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    timer_t t;
    CHECK(timer_create(CLOCK_MONOTONIC, &e, &t) == 0);
    struct itimerspec s = {{0, 2000000}, {0, 2000000}};
    timer_settime(t, 0, &s, 0);
    while (n < 50) pause();
    timer_delete(t);
    printf("%d\n", code == SI_TIMER);
}
