#include "sem.h"
#include <sys/signalfd.h>
int main(void) {
    sigset_t m;
    sigemptyset(&m), sigaddset(&m, SIGUSR1), sigaddset(&m, SIGCHLD);
    sigprocmask(SIG_BLOCK, &m, 0);
    int f = signalfd(-1, &m, 0);
    raise(SIGUSR1);
    struct signalfd_siginfo i;
    read(f, &i, sizeof i);
    printf("%u\n", i.ssi_signo);
    if (fork() == 0) _exit(5);
    read(f, &i, sizeof i);
    printf("%u %d\n", i.ssi_signo, i.ssi_status);
}
