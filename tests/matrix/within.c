// Instrumentation that begins in the middle of things: deep in calls, in recursion, in a handler, in a thread, behind code that has
// no frame descriptions. What is active then has its true callers.
// cc: -pthread
#include <callgrind.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

static volatile long sink;
APART void leaf(long n) { while (n-- > 0) sink += n & 1 ? 2 : 3; }
APART void begins(void) { CALLGRIND_START_INSTRUMENTATION; leaf(3); }
APART void inner(void) { begins(); leaf(5); sink++; }
APART void middle(void) { leaf(2); inner(); leaf(7); sink++; }
APART void outer(void) { middle(); leaf(11); sink++; }

APART long down(int n)
{
    if (n == 0) begins();
    else sink += down(n - 1);
    leaf(n);
    return n;
}

APART void handler(int signal) { inner(); leaf(signal); }
APART void raises(void) { raise(SIGUSR1); leaf(13); }
// Waits until the first thread waits for it: what that executes counts only from when instrumentation has begun.
static void is_waited_for(void)
{
    char path[64], call[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", getpid());
    while (strncmp(call, "202 ", 4)) {
        int fd = open(path, O_RDONLY);
        if (fd < 0 || read(fd, call, sizeof call) < 4) _exit(3);
        close(fd);
    }
}
APART void *thread(void *unused) { is_waited_for(); outer(); leaf(4); return unused; }
APART int compare(const void *a, const void *b)
{
    static int done;
    if (!done++) inner();
    return *(const int *)a - *(const int *)b;
}

int main(int argc, char **argv)
{
    int numbers[] = { 3, 1, 2 };
    pthread_t t;
    signal(SIGUSR1, handler);
    switch (argc > 1 ? *argv[1] : 'c') {
    case 'c': outer(); break;
    case 'r': sink += down(5); break;
    case 'h': raises(); break;
    case 't': if (pthread_create(&t, 0, thread, 0) || pthread_join(t, 0)) return 1; break;
    case 'q': qsort(numbers, 3, sizeof *numbers, compare); break;
    }
    leaf(17);
    CALLGRIND_STOP_INSTRUMENTATION;
    return 0;
}
