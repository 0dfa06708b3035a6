// cc: -O1 -g -pthread
/* Says when it is ready, waits for a byte, executes a window that it marks itself, says that it has, and waits for another byte. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cachegrind.h"
#include "callgrind.h"

static volatile unsigned sum;

__attribute__((noinline)) static void inner(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        sum += i * n;
}

__attribute__((noinline)) static void outer(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        inner(i);
    sum++;
}

static void *beside(void *argument)
{
    for (unsigned i = 0; i < 2000; i++)
        outer(10);
    return argument;
}

__attribute__((noinline)) static void round_of(const char *what)
{
    char byte;
    if (write(1, what, 1) != 1 || read(0, &byte, 1) != 1)
        exit(2);
    sum++;
}

__attribute__((noinline)) static void work(void)
{
    pthread_t thread;
    CACHEGRIND_START_INSTRUMENTATION;
    CALLGRIND_START_INSTRUMENTATION;
    pthread_create(&thread, 0, beside, 0);
    outer(3000);
    pthread_join(thread, 0);
    CALLGRIND_STOP_INSTRUMENTATION;
    CACHEGRIND_STOP_INSTRUMENTATION;
}

__attribute__((noinline)) static void within(void)
{
    round_of("r");
    work();
    round_of("w");
    /* And without a window. */
    outer(2000);
    CALLGRIND_DUMP_STATS;
    round_of("d");
    sum++;
}

int main(void)
{
    within();
    return 0;
}
