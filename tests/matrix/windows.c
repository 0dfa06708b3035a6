// Windows of instrumentation, one after the other, with a pause outside them that lasts as long as the second argument says (in
// milliseconds): whatever the engine does about code outside, what is counted is the same.
// Functions are bound at the start: which thread would be the first to call one is left to chance.
// cc: -pthread -Wl,-z,now
#include <callgrind.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))
#define WINDOWS 3

static volatile long sink;
static char memory[1 << 16];
static long pause_ms;

APART void leaf(long n) { while (n-- > 0) { sink += n & 1 ? 2 : 3; memory[(n * 4096 + n * 64) & 0xffff]++; } }
APART int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
APART void inside(void) { sink += fib(9); leaf(40); }
APART void outside(void) { leaf(7); sink += fib(6); }

APART void idle(void)
{
    struct timespec t = { pause_ms / 1000, pause_ms % 1000 * 1000000 };
    outside();
    if (pause_ms) while (nanosleep(&t, &t)) outside();
    outside();
}

APART void window(void)
{
    CALLGRIND_START_INSTRUMENTATION;
    inside();
    CALLGRIND_STOP_INSTRUMENTATION;
}

APART void handler(int signal) { inside(); leaf(signal); }
APART void opens(int signal) { window(); leaf(signal); }
APART void ticks(int signal) { outside(); leaf(signal); }

static pthread_barrier_t barrier;
static volatile int over;

// Is born outside, works inside when it is told to.
APART void *worker(void *unused)
{
    for (int i = 0; i < WINDOWS; i++) {
        pthread_barrier_wait(&barrier);
        inside();
        pthread_barrier_wait(&barrier);
    }
    return unused;
}

// Never stops by itself.
APART void *spinner(void *unused) { while (!over) sink++; return unused; }

// Waits in the kernel for a child that takes its time.
APART void *spawner(void *unused)
{
    pthread_barrier_wait(&barrier);
    pid_t child = vfork();
    if (child == 0) {
        struct timespec t = { 0, 100000000 };
        nanosleep(&t, 0);
        _exit(0);
    }
    waitpid(child, 0, 0);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t t[2];
    char mode = argc > 1 ? *argv[1] : 'w';
    // If it has begun before.
    CALLGRIND_STOP_INSTRUMENTATION;
    pause_ms = argc > 2 ? atol(argv[2]) : 0;
    pthread_barrier_init(&barrier, 0, 2);
    switch (mode) {
    case 'w':
        for (int i = 0; i < WINDOWS; i++) { idle(); window(); }
        idle();
        break;
    case 's':
        signal(SIGUSR1, handler);
        for (int i = 0; i < WINDOWS; i++) {
            idle();
            CALLGRIND_START_INSTRUMENTATION;
            raise(SIGUSR1);
            CALLGRIND_STOP_INSTRUMENTATION;
            raise(SIGUSR1);
        }
        break;
    case 'h':
        signal(SIGUSR1, opens);
        for (int i = 0; i < WINDOWS; i++) { idle(); raise(SIGUSR1); }
        break;
    case 'i': {
        struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, never = { { 0, 0 }, { 0, 0 } };
        signal(SIGALRM, ticks);
        for (int i = 0; i < WINDOWS; i++) {
            setitimer(ITIMER_REAL, &often, 0);
            idle();
            setitimer(ITIMER_REAL, &never, 0);
            window();
        }
        break;
    }
    case 't':
        if (pthread_create(t, 0, worker, 0)) return 1;
        for (int i = 0; i < WINDOWS; i++) {
            idle();
            CALLGRIND_START_INSTRUMENTATION;
            pthread_barrier_wait(&barrier);
            pthread_barrier_wait(&barrier);
            inside();
            CALLGRIND_STOP_INSTRUMENTATION;
        }
        pthread_join(t[0], 0);
        break;
    case 'o':
        for (int i = 0; i < 2; i++) if (pthread_create(t + i, 0, spinner, 0)) return 1;
        for (int i = 0; i < WINDOWS; i++) { idle(); window(); }
        over = 1;
        for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
        break;
    case 'v':
        if (pthread_create(t, 0, spawner, 0)) return 1;
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < WINDOWS; i++) { idle(); window(); }
        pthread_join(t[0], 0);
        break;
    case 'f': {
        idle();
        pid_t child = fork();
        if (child == 0) { idle(); window(); idle(); window(); exit(0); }
        waitpid(child, 0, 0);
        window();
        break;
    }
    }
    return 0;
}
