#include "sem.h"
int main(void) {
    sigset_t m;
    sigemptyset(&m), sigaddset(&m, SIGUSR1), sigaddset(&m, SIGUSR2);
    sigprocmask(SIG_BLOCK, &m, 0);
    raise(SIGUSR2);
    int s;
    printf("%d ", sigwait(&m, &s));
    printf("%d\n", s);
    struct timespec t = {0, 10000000};
    printf("%d %d\n", sigtimedwait(&m, 0, &t), errno == EAGAIN);
    siginfo_t i;
    union sigval v = {.sival_int = 9};
    sigqueue(getpid(), SIGUSR1, v);
    int signal = sigwaitinfo(&m, &i);
    printf("%d %d\n", signal, i.si_value.sival_int);
}
