// Signals that are ignored do not exist: no call that waits ends because of them, neither of those that the kernel never makes
// again (they end with EINTR) nor of others.
#include "sem.h"
#include <sys/epoll.h>
#include <sys/sem.h>
static int pipes[2], sem;
static void disturb(pid_t parent) {
    for (int i = 0; i < 20; i++) {
        kill(parent, i % 3 == 0 ? SIGWINCH : i % 3 == 1 ? SIGUSR1 : SIGURG);
        struct timespec t = {0, 3000000};
        nanosleep(&t, 0);
        if (fork() == 0) _exit(0); // The parent does not hear of it: it is not its child.
        wait(0);
    }
}
static pid_t child(int what) {
    pid_t parent = getpid(), c = fork();
    if (c) return c;
    disturb(parent);
    struct sembuf up = {0, 1, 0};
    if (what == 0) CHECK(write(pipes[1], "x", 1) == 1);
    if (what == 1) CHECK(semop(sem, &up, 1) == 0);
    if (what == 2) kill(parent, SIGUSR2);
    // Its end sends SIGCHLD to a parent that may still wait.
    _exit(0);
}
int main(void) {
    signal(SIGUSR1, SIG_IGN);
    sigset_t set;
    sigemptyset(&set), sigaddset(&set, SIGUSR2), sigprocmask(SIG_BLOCK, &set, 0);
    CHECK(pipe(pipes) == 0);
    CHECK((sem = semget(IPC_PRIVATE, 1, 0600)) >= 0);
    int e = epoll_create1(0);
    struct epoll_event in = {.events = EPOLLIN}, out;
    CHECK(epoll_ctl(e, EPOLL_CTL_ADD, pipes[0], &in) == 0);
    char c;
    child(0);
    int n = epoll_wait(e, &out, 1, -1);
    printf("epoll_wait %d %s\n", n, n < 0 ? strerror(errno) : "");
    printf("read %d\n", (int)read(pipes[0], &c, 1));
    wait(0);
    child(1);
    struct sembuf down = {0, -1, 0};
    n = semop(sem, &down, 1);
    printf("semop %d %s\n", n, n < 0 ? strerror(errno) : "");
    wait(0);
    semctl(sem, 0, IPC_RMID);
    child(2);
    n = sigwaitinfo(&set, 0);
    printf("sigwaitinfo %d %s\n", n, n < 0 ? strerror(errno) : "");
    wait(0);
    // With a handler they end, as always.
    on(SIGUSR1, (void (*)(int, siginfo_t *, void *))abs, SA_RESTART);
    if (fork() == 0) {
        struct timespec t = {0, 50000000};
        nanosleep(&t, 0);
        kill(getppid(), SIGUSR1);
        _exit(0);
    }
    n = epoll_wait(e, &out, 1, -1);
    printf("epoll_wait %d %s\n", n, n < 0 ? strerror(errno) : "");
}
