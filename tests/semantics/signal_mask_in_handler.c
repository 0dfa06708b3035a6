#include "sem.h"
static void h(int s, siginfo_t *i, void *c) {
    sigset_t m;
    sigprocmask(0, 0, &m);
    printf("%d %d %d\n", s, sigismember(&m, SIGUSR1), sigismember(&m, SIGUSR2));
}
int main(void) {
    struct sigaction a = {.sa_sigaction = h, .sa_flags = SA_SIGINFO};
    sigaddset(&a.sa_mask, SIGUSR2);
    sigaction(SIGUSR1, &a, 0);
    on(SIGUSR2, h, SA_NODEFER);
    raise(SIGUSR1);
    raise(SIGUSR2);
    sigset_t m;
    sigprocmask(0, 0, &m);
    printf("%d %d\n", sigismember(&m, SIGUSR1), sigismember(&m, SIGUSR2));
}
