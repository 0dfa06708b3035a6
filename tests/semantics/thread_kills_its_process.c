// A thread that blocks a signal sends it to its process, whose other thread does not block it: the process is dead before the
// call returns, so that neither waiting for the signal nor reading it from a descriptor takes it away. With an argument: so
// many times.
#include "sem.h"
#include <sys/signalfd.h>

static int way;
// While a thread is created its creator blocks everything.
static atomic_int created;
static void *sender(void *arg UNUSED) {
    sigset_t s = block_signal(SIGTERM);
    int fd = signalfd(-1, &s, 0);
    struct signalfd_siginfo info;
    while (!created) {}
    if (way == 2) CHECK(sigqueue(getpid(), SIGTERM, (union sigval){0}) == 0);
    else if (way == 3) CHECK(syscall(SYS_tgkill, getpid(), getpid(), SIGTERM) == 0);
    else CHECK(kill(getpid(), SIGTERM) == 0);
    if (way == 1) CHECK(read(fd, &info, sizeof info) > 0);
    else if (way == 0) {
        struct timespec t = {5, 0};
        sigtimedwait(&s, 0, &t);
    }
    write(1, "still alive\n", 12);
    _exit(1);
}
// All block it: somebody waits for it, and nobody dies.
static void *waiter(void *arg UNUSED) {
    sigset_t s;
    sigemptyset(&s), sigaddset(&s, SIGTERM);
    int sig;
    CHECK(sigwait(&s, &sig) == 0);
    printf("got %d\n", sig);
    return 0;
}

int main(int argc, char **argv) {
    int times = argc > 1 ? atoi(argv[1]) : 5, status;
    for (way = 0; way < 4; way++) {
        int died = 0;
        for (int i = 0; i < times; i++) {
            pid_t child = fork();
            if (child == 0) {
                pthread_t t;
                CHECK(pthread_create(&t, 0, sender, 0) == 0);
                created = 1;
                work(1000000000);
                _exit(2);
            }
            CHECK(waitpid(child, &status, 0) == child);
            died += WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
        }
        printf("way %d: %s\n", way, died == times ? "all died" : "some lived");
    }
    fflush(stdout);
    if (fork() == 0) {
        block_signal(SIGTERM);
        pthread_t t;
        CHECK(pthread_create(&t, 0, waiter, 0) == 0);
        for (int i = 0; i < 3; i++) usleep(2000);
        CHECK(kill(getpid(), SIGTERM) == 0);
        pthread_join(t, 0);
        fflush(stdout);
        _exit(0);
    }
    wait(&status);
    show_status(status);
    return 0;
}
