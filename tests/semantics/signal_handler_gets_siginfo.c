#include "sem.h"
static volatile int code, pid_ok;
static void h(int s, siginfo_t *i, void *c) { code = i->si_code; pid_ok = i->si_pid == getpid(); }
int main(void) {
    on(SIGUSR1, h, 0);
    raise(SIGUSR1);
    printf("%d %d\n", code, pid_ok);
    kill(getpid(), SIGUSR1);
    printf("%d %d\n", code, pid_ok);
    union sigval v = {.sival_int = 42};
    sigqueue(getpid(), SIGUSR1, v);
    printf("%d %d\n", code, pid_ok);
}
