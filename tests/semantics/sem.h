// What the semantics programs share. Each shows one behaviour, prints what it sees, and prints the same however it is run.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define CHECK(x) ((x) ? (void)0 : (printf("line %d: %s: %s\n", __LINE__, #x, strerror(errno)), fflush(stdout), _exit(99)))

static inline void on(int sig, void (*f)(int, siginfo_t *, void *), int flags) {
    struct sigaction a = {.sa_sigaction = f, .sa_flags = SA_SIGINFO | flags};
    CHECK(sigaction(sig, &a, 0) == 0);
}
static inline sigset_t block_signal(int sig) {
    sigset_t s;
    sigemptyset(&s), sigaddset(&s, sig);
    CHECK(pthread_sigmask(SIG_BLOCK, &s, 0) == 0);
    return s;
}
static inline void every(long us) {
    struct itimerval t = {{0, us}, {0, us}};
    CHECK(setitimer(ITIMER_REAL, &t, 0) == 0);
}
static inline void show_status(int status) {
    if (WIFEXITED(status)) printf("exited %d\n", WEXITSTATUS(status));
    if (WIFSIGNALED(status)) printf("killed by %d\n", WTERMSIG(status));
    if (WIFSTOPPED(status)) printf("stopped by %d\n", WSTOPSIG(status));
    if (WIFCONTINUED(status)) printf("continued\n");
}
static inline unsigned long work(unsigned long n) {
    unsigned long h = 1;
    for (unsigned long i = 0; i < n; i++) h = h * 6364136223846793005 + i;
    return h;
}
#define UNUSED __attribute__((unused))
