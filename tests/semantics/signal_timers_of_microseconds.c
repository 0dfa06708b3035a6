// Signals that come every few microseconds, faster than anybody can deal with them, and a program that gets on all the same:
// computing, in system calls, in handlers that are interrupted themselves, with the signal ignored; and that finds blocked what
// it blocks. With arguments: so many intervals, of so many microseconds. (Natively, too, nothing ends where the kernel takes
// longer for a signal than until the next one, which may be 5 us.)
#include "sem.h"

static volatile sig_atomic_t rung;
static void ring(int s UNUSED, siginfo_t *i UNUSED, void *c UNUSED) { rung = 1; }
static volatile unsigned long sum;

static timer_t other(int sig) {
    struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = sig};
    timer_t t;
    CHECK(timer_create(CLOCK_MONOTONIC, &e, &t) == 0);
    return t;
}
static void set(timer_t t, long us) {
    struct itimerspec v = {{0, us * 1000}, {0, us * 1000}};
    CHECK(timer_settime(t, 0, &v, 0) == 0);
}
static timer_t second;
// Where a handler takes longer than until the next signal, handlers would lie on one another until the stack is full.
static void compute(int s UNUSED, siginfo_t *i UNUSED, void *c UNUSED) {
    static volatile sig_atomic_t deep;
    if (++deep == 500) every(0), set(second, 0);
    sum += work(100);
    deep--;
}
static void nothing_is_blocked(void) {
    sigset_t now, none;
    sigemptyset(&now), sigemptyset(&none);
    CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, 0, &now, 8) == 0);
    CHECK(memcmp(&now, &none, 8) == 0);
}
static void *thread(void *arg) {
    nothing_is_blocked();
    return arg;
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 50;
    long us = argc > 2 ? atol(argv[2]) : 60;
    setvbuf(stdout, 0, _IONBF, 0);
    on(SIGALRM, ring, SA_RESTART);
    for (int i = 0; i < n; i++) {
        rung = 0;
        every(us);
        while (!rung) {}
        every(0);
    }
    printf("intervals\n");
    every(us);
    for (int i = 0; i < 20 * n; i++) CHECK(getppid() > 0);
    printf("system calls\n");
    for (int i = 0; i < n; i++) nothing_is_blocked();
    // (No process is ever created where a signal always comes first.)
    every(5000);
    for (int i = 0; i < n / 10; i++) {
        pthread_t t;
        CHECK(pthread_create(&t, 0, thread, 0) == 0 && pthread_join(t, 0) == 0);
        pid_t child = fork();
        if (child == 0) nothing_is_blocked(), _exit(0);
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    printf("nothing is blocked\n");
    every(0);
    // Handlers that are interrupted by each other and by themselves.
    on(SIGALRM, compute, SA_RESTART | SA_NODEFER);
    on(SIGUSR1, compute, SA_RESTART);
    second = other(SIGUSR1);
    every(2 * us), set(second, 2 * us);
    printf("%lx\n", work(10000UL * (unsigned)n));
    every(0), set(second, 0);
    signal(SIGALRM, SIG_IGN), signal(SIGUSR1, SIG_IGN);
    every(us), set(second, us);
    printf("%lx\n", work(10000UL * (unsigned)n));
    for (int i = 0; i < 20 * n; i++) CHECK(getppid() > 0);
    printf("ignored\n");
    return 0;
}
