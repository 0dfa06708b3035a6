// Ten windows, and between them work that lasts: alone, or beside a thread. Tells whether requests are answered, and how many.
#include <cachegrind.h>
#include <callgrind.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned sink;

__attribute__((noinline)) void inside(void) { for (int i = 0; i < 100; i++) sink += i; }

// Some milliseconds, without a system call and with some.
__attribute__((noinline)) void outside(void)
{
    struct timespec t, begin;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        for (int i = 0; i < 100000; i++) sink += i;
        clock_gettime(CLOCK_MONOTONIC, &t);
    } while ((t.tv_sec - begin.tv_sec) * 1000 + (t.tv_nsec - begin.tv_nsec) / 1000000 < 8);
}

static void *waits(void *unused) { pause(); return unused; }

int main(int argc, char **argv)
{
    int answers = 0;
    pthread_t thread;
    if (argc > 1 && !strcmp(argv[1], "threads") && pthread_create(&thread, 0, waits, 0)) return 1;
    for (int i = 0; i < 10; i++) {
        outside();
        answers += RUNNING_ON_VALGRIND;
        outside();
        CALLGRIND_START_INSTRUMENTATION;
        CACHEGRIND_START_INSTRUMENTATION;
        inside();
        CACHEGRIND_STOP_INSTRUMENTATION;
        CALLGRIND_STOP_INSTRUMENTATION;
    }
    printf("%d %d\n", RUNNING_ON_VALGRIND, answers);
    return 0;
}
