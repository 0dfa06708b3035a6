// A thread that is not its process's first one executes a program, while the first one is sent signals that do nothing, thick
// and fast: the program inherits what that thread blocks, not what the first one does.
#include "sem.h"

static pid_t flood;

static void *executes(void *set) {
    char *const argv[] = {"executed", 0};
    CHECK(pthread_sigmask(SIG_SETMASK, set, 0) == 0);
    usleep(2000);
    execv("/proc/self/exe", argv);
    _exit(97);
}

static int shows(void) {
    sigset_t blocked;
    CHECK(sigprocmask(SIG_BLOCK, 0, &blocked) == 0);
    int n = 0;
    for (int sig = 1; sig < 32; sig++) n += sigismember(&blocked, sig);
    return n << 2 | sigismember(&blocked, SIGTRAP) << 1 | sigismember(&blocked, SIGUSR1);
}

static void attempt(void) {
    pid_t first = getpid();
    sigset_t set;
    pthread_t t;
    flood = fork();
    CHECK(flood >= 0);
    // Until the process has ended: then somebody else is the parent.
    while (!flood && getppid() == first) kill(first, SIGURG);
    if (!flood) _exit(0);
    sigemptyset(&set);
    sigaddset(&set, SIGTRAP);
    sigaddset(&set, SIGUSR1);
    CHECK(pthread_create(&t, 0, executes, &set) == 0);
    for (;;) work(100);
}

int main(int argc UNUSED, char **argv) {
    if (strcmp(argv[0], "executed") == 0) return shows();
    for (int i = 0; i < 20; i++) {
        pid_t p = fork();
        CHECK(p >= 0);
        if (!p) attempt();
        int status;
        CHECK(waitpid(p, &status, 0) == p);
        show_status(status);
    }
    return 0;
}
