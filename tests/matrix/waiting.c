// Threads that wait in a system call while another one changes what counts: instrumentation, or with `c` the context that they
// follow. Whoever waits has begun its call before, and it counts there once, whatever it takes to wake them. So each instruction of
// `waits` counts as often as there are changes of one kind, times the threads.
// cc: -pthread -Wl,-z,now
#ifdef CACHEGRIND
#include <cachegrind.h>
#define START CACHEGRIND_START_INSTRUMENTATION
#define STOP CACHEGRIND_STOP_INSTRUMENTATION
#else
#include <callgrind.h>
#define START CALLGRIND_START_INSTRUMENTATION
#define STOP CALLGRIND_STOP_INSTRUMENTATION
#define CG_PUSH_CONTEXT_NAMED(name)
#define CG_POP_CONTEXT()
#endif
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))
enum { THREADS = 3, CHANGES = 60 };

static int to[THREADS][2], from[2];
static volatile pid_t tids[THREADS];

APART long waits(long fd, char *c)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_read), "D"(fd), "S"(c), "d"(1L) : "rcx", "r11", "memory");
    return result;
}

static void *works(void *number)
{
    long me = (long)number;
    char c;
    tids[me] = syscall(SYS_gettid);
    while (waits(to[me][0], &c) == 1 && c == 'g')
        if (write(from[1], &c, 1) != 1) break;
    return 0;
}

// Until all of them wait; a thread that is stopped in its call does so, too.
static void all_wait(void)
{
    for (int i = 0; i < THREADS; i++) {
        char path[64], call[32] = "";
        do {
            snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tids[i]);
            int fd = open(path, O_RDONLY);
            if (fd < 0 || read(fd, call, sizeof call) < 2) _exit(3);
            close(fd);
        } while (strncmp(call, "0 ", 2));
    }
}

static void changes(int on, int contexts)
{
    if (contexts && on) CG_PUSH_CONTEXT_NAMED("within");
    else if (contexts) CG_POP_CONTEXT();
    else if (on) START;
    else STOP;
}

int main(int argc, char **argv)
{
    int contexts = argc > 1 && argv[1][0] == 'c';
    pthread_t threads[THREADS];
    char c = 'g';
    if (pipe(from)) return 1;
    for (long i = 0; i < THREADS; i++)
        if (pipe(to[i]) || pthread_create(&threads[i], 0, works, (void *)i)) return 1;
    for (int i = 0; i < THREADS; i++)
        while (!tids[i]) usleep(1000);
    for (int n = 0; n < CHANGES; n++) {
        all_wait();
        changes(n % 2 == 0, contexts);
        // Sometimes one change follows another at once, sometimes there is time for what is done later.
        if (n % 7 == 3) { changes(n % 2, contexts); changes(n % 2 == 0, contexts); }
        if (n % 8 == 1) usleep(55000);
        for (int i = 0; i < THREADS; i++)
            if (write(to[i][1], &c, 1) != 1 || read(from[0], &c, 1) != 1) return 2;
    }
    all_wait();
    for (int i = 0; i < THREADS; i++) {
        if (write(to[i][1], "e", 1) != 1) return 2;
        pthread_join(threads[i], 0);
    }
    return 0;
}
