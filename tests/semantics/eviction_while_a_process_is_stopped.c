// cc: -O1 -pthread
// A process whose threads rewrite their code is stopped and continued all the time; each time it has to be stopped, wherever its
// threads were, and each time it has to go on.
#include "eviction.h"

enum { THREADS = 3, ROUNDS = 30 };

static volatile int ticks;
static void tick(int sig UNUSED, siginfo_t *info UNUSED, void *context UNUSED) { ticks++; }
static void *rewrite(void *arg UNUSED) { return (void *)evict(area(), ROUNDS); }

static int child(void) {
    pthread_t t[THREADS];
    void *h;
    unsigned long sum = 0;
    on(SIGALRM, tick, SA_RESTART);
    every(1000);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&t[i], 0, rewrite, 0) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(t[i], &h) == 0), sum += (unsigned long)h;
    every(0);
    return sum == THREADS * 12ul * (ROUNDS * (ROUNDS - 1) / 2) + THREADS * 66ul * ROUNDS ? 7 : 8;
}

int main(void) {
    int status;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) _exit(child());
    for (;;) {
        struct timespec t = {0, 3000000};
        nanosleep(&t, 0);
        kill(pid, SIGSTOP);
        CHECK(waitpid(pid, &status, WUNTRACED) == pid);
        if (!WIFSTOPPED(status)) break;
        CHECK(kill(pid, SIGCONT) == 0);
        CHECK(waitpid(pid, &status, WCONTINUED) == pid);
        // Or it has gone on to its end.
        if (!WIFCONTINUED(status)) break;
    }
    show_status(status);
    return 0;
}
