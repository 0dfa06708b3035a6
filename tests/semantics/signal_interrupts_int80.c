// What waits in the other table's system calls is interrupted by signals as it is natively: by those that are caught, and by
// those that kill, but not by those that are ignored.
#include "int80.h"
#include <sys/epoll.h>
static volatile int caught;
static void handler(int sig UNUSED, siginfo_t *i UNUSED, void *c UNUSED) { caught++; }
static pid_t after(long ms, pid_t whom, int sig, int sig2) {
    pid_t p = fork();
    CHECK(p >= 0);
    if (p) return p;
    for (int i = 0; i < 2; i++) {
        struct timespec t = {0, ms * 1000000};
        nanosleep(&t, 0);
        kill(whom, i ? sig2 : sig);
    }
    _exit(0);
}
static void end(pid_t p) { CHECK(waitpid(p, 0, 0) == p); }
int main(void) {
    int ends[2], s;
    char *byte = low();
    int *time = low();
    unsigned *mask = low();
    CHECK(pipe(ends) == 0);
    on(SIGUSR1, handler, 0);
    on(SIGUSR2, handler, SA_RESTART);
    // Ends the call.
    pid_t p = after(30, getpid(), SIGUSR1, 0);
    printf("read %d\n", int80(NR_READ, ends[0], (long)byte, 1, 0, 0));
    end(p);
    time[0] = 100, time[1] = 0;
    p = after(30, getpid(), SIGUSR2, 0);
    printf("nanosleep %d\n", int80(NR_NANOSLEEP, (long)time, 0, 0, 0, 0));
    end(p);
    // Has it made again; then there is something to read.
    p = fork();
    if (p == 0) {
        struct timespec t = {0, 30000000};
        nanosleep(&t, 0), kill(getppid(), SIGUSR2), nanosleep(&t, 0), write(ends[1], "x", 1);
        _exit(0);
    }
    int n = int80(NR_READ, ends[0], (long)byte, 1, 0, 0);
    printf("read %d %c %d\n", n, *byte, caught);
    end(p);
    // A mask that such a call sets, and one that it swaps while it waits.
    mask[0] = 1u << (SIGUSR1 - 1);
    printf("sigprocmask %d\n", int80(NR_SIGPROCMASK, SIG_BLOCK, (long)mask, 0, 8, 0));
    sigset_t now;
    sigprocmask(0, 0, &now);
    kill(getpid(), SIGUSR1);
    printf("%d %d\n", sigismember(&now, SIGUSR1), caught);
    mask[0] = 0;
    printf("sigsuspend %d", int80(NR_SIGSUSPEND, (long)mask, 8, 0, 0, 0));
    printf(" %d\n", caught);
    sigprocmask(0, 0, &now);
    printf("%d\n", sigismember(&now, SIGUSR1));
    // Ignored ones do not exist, not even for calls that are never made again.
    signal(SIGUSR2, SIG_IGN);
    int e = epoll_create1(0);
    struct epoll_event in = {.events = EPOLLIN}, *out = low();
    CHECK(epoll_ctl(e, EPOLL_CTL_ADD, ends[0], &in) == 0);
    p = fork();
    if (p == 0) {
        for (int i = 0; i < 10; i++) {
            struct timespec t = {0, 5000000};
            nanosleep(&t, 0), kill(getppid(), i % 2 ? SIGUSR2 : SIGWINCH);
        }
        write(ends[1], "y", 1);
        _exit(0);
    }
    printf("epoll_wait %d\n", int80(NR_EPOLL_WAIT, e, (long)out, 1, -1, 0));
    end(p);
    // Deadly ones kill, and stops stop.
    p = fork();
    if (p == 0) int80(NR_READ, ends[0], (long)byte, 1, 0, 0), int80(NR_READ, ends[0], (long)byte, 1, 0, 0), _exit(3);
    struct timespec t = {0, 30000000};
    nanosleep(&t, 0);
    kill(p, SIGSTOP);
    CHECK(waitpid(p, &s, WUNTRACED) == p);
    show_status(s);
    kill(p, SIGCONT);
    CHECK(waitpid(p, &s, WCONTINUED) == p);
    show_status(s);
    kill(p, SIGTERM);
    CHECK(waitpid(p, &s, 0) == p);
    show_status(s);
}
