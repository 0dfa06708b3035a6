#include <callgrind.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
enum { N = 1 << 16 };
static char *data;
static volatile unsigned sink;
static jmp_buf back, out_of_handler;
__attribute__((noinline)) void touch(unsigned from, unsigned step, unsigned n) { while (n--) sink += data[(from += step) % N]++; }
__attribute__((noinline)) void outer(unsigned n) { touch(n, 64, 300); sink++; }
__attribute__((noinline)) int fib(int n) { if (n < 2) { touch(n * 512, 96, 20); return n; } int r = fib(n - 1) + fib(n - 2); sink++; return r; }
__attribute__((noinline)) int odd(int n);
__attribute__((noinline)) int even(int n) { touch(n, 128, 9); int r = n == 0 ? 1 : odd(n - 1); sink++; return r; }
__attribute__((noinline)) int odd(int n) { touch(n + 77, 200, 9); int r = n == 0 ? 0 : even(n - 1); sink++; return r; }
__attribute__((noinline)) void deep(int n) { touch(n * 333, 77, 30); if (n == 0) longjmp(back, 1); deep(n - 1); sink++; }
__attribute__((noinline)) void jumps(void) { if (!setjmp(back)) deep(6); touch(5, 64, 40); }
__attribute__((noinline)) void in_handler(void) { touch(9, 320, 50); }
static void handler(int s) { in_handler(); if (s == SIGUSR2) siglongjmp(out_of_handler, 1); if (s == SIGUSR1) raise(SIGHUP); sink++; }
__attribute__((noinline)) void signals(void) {
    signal(SIGUSR1, handler); signal(SIGHUP, handler); signal(SIGUSR2, handler);
    raise(SIGUSR1);
    if (!sigsetjmp(out_of_handler, 1)) raise(SIGUSR2);
    touch(1, 64, 100);
}
__attribute__((noinline)) void *worker(void *n) { for (int i = 0; i < 20; i++) { outer(i * 4096 + (unsigned)(long)n); even(3); } return 0; }
__attribute__((noinline)) void threads(void) { pthread_t t[3]; for (long i = 0; i < 3; i++) pthread_create(&t[i], 0, worker, (void *)i); for (int i = 0; i < 3; i++) pthread_join(t[i], 0); }
__attribute__((noinline)) void begun_here(void) { CALLGRIND_START_INSTRUMENTATION; touch(3, 64, 500); }
__attribute__((noinline)) void stage(void) { outer(5); fib(7); even(6); jumps(); }
__attribute__((noinline)) void forks(void) { if (fork() == 0) { stage(); outer(77); _exit(0); } wait(0); outer(99); }
int cmp(const void *a, const void *b) { return *(char *)a - *(char *)b; }
int main(int argc, char **argv) {
    data = malloc(N); memset(data, 1, N);
    stage();
    signals();
    if (argc < 3) threads();
    if (argc > 1) {
        CALLGRIND_DUMP_STATS;
        stage();
        CALLGRIND_STOP_INSTRUMENTATION;
        stage();
        begun_here();
        stage();
        CALLGRIND_TOGGLE_COLLECT;
        stage();
        CALLGRIND_TOGGLE_COLLECT;
        outer(8);
        CALLGRIND_DUMP_STATS;
        CALLGRIND_ZERO_STATS;
        stage();
    }
    forks();
    qsort(data, 4000, 1, cmp);
    stage();
    return 0;
}
