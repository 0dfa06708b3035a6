// All that calls can be, for a comparison of calls that are followed with calls that are told: deep and mutual recursion,
// longjmp out of it, many targets of one call and of one jump, tail calls, callbacks, a handler, threads, a fork, a library
// that comes and goes.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "ended.h"

#define NOINLINE __attribute__((noinline, noclone))
static volatile long sink;
static jmp_buf back;

NOINLINE long deep(long n) { return n == 0 ? 1 : deep(n - 1) + n % 3; }
NOINLINE long odd(long n);
NOINLINE long even(long n) { return n == 0 ? 1 : odd(n - 1) + 0 * sink; }
NOINLINE long odd(long n) { return n == 0 ? 0 : even(n - 1) + 0 * sink; }
NOINLINE void leave(long n) {
    if (n == 0) longjmp(back, 1);
    leave(n - 1);
    sink++;
}
#define TARGET(i) NOINLINE static long f##i(long n) { sink += i; return n * i + 1; }
TARGET(1) TARGET(2) TARGET(3) TARGET(4) TARGET(5) TARGET(6) TARGET(7) TARGET(8) TARGET(9)
static long (*const table[])(long) = {f1, f2, f3, f4, f5, f6, f7, f8, f9};
NOINLINE long through_table(long n) { return table[n % 9](n) + 1; }
NOINLINE long chosen(long n) {
    switch (n % 10) {
    case 0: sink += 3; break;
    case 1: sink ^= 5; break;
    case 2: sink -= 7; break;
    case 3: sink *= 3; break;
    case 4: sink |= 1; break;
    case 5: sink &= 0xffff; break;
    case 6: sink += n; break;
    case 7: sink -= n; break;
    case 8: sink <<= 1; break;
    default: sink >>= 1;
    }
    return sink;
}
NOINLINE long last(long n) { return n + sink % 2; }
NOINLINE long tail(long n) { sink++; return n & 1 ? last(n) : through_table(n); }
static int less(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static void handler(int signal) { (void)signal; sink += deep(10); }
// Whoever joins a thread waits or not, as it happens to come; who reads from a pipe just reads.
static int ends[2], lives;
// Stacks of their own: whether a thread that has ended has left its own to the next one by then is up to chance.
static char stacks[3][256 << 10] __attribute__((aligned(4096)));
static void *thread(void *n) {
    tells_of_its_end(&lives);
    long result = deep((long)n) + even(100);
    if (write(ends[1], &result, sizeof result) != sizeof result) abort();
    return NULL;
}

int main(void) {
    long sum = 0;
    for (int i = 0; i < 3; i++) sum += deep(40000) + deep(1500 + i) + even(3000);
    for (int i = 0; i < 30; i++)
        if (!setjmp(back)) leave(100 * i);
    for (long i = 0; i < 3000; i++) sum += through_table(i) + chosen(i * 7) + tail(i);
    int numbers[500];
    for (int i = 0; i < 500; i++) numbers[i] = i * 7919 % 1000;
    qsort(numbers, 500, sizeof *numbers, less);
    signal(SIGUSR1, handler);
    for (int i = 0; i < 20; i++) raise(SIGUSR1);
    for (long i = 0; i < 3; i++) {
        pthread_t t;
        long result = 0;
        pthread_attr_t detached;
        pthread_attr_init(&detached);
        pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstack(&detached, stacks[i], sizeof stacks[i]);
        lives = 1;
        if (pipe(ends) || pthread_create(&t, &detached, thread, (void *)(i * 100))) return 1;
        if (read(ends[0], &result, sizeof result) != sizeof result) return 2;
        has_ended(&lives);
        sum += result;
    }
    for (int i = 0; i < 3; i++) {
        void *library = dlopen("libm.so.6", RTLD_NOW);
        double (*cosine)(double) = library ? (double (*)(double))dlsym(library, "cos") : NULL;
        for (int k = 0; cosine && k < 20; k++) sum += cosine(k) > 0;
        if (library) dlclose(library);
    }
    pid_t child = fork();
    if (child == 0) _exit((deep(50) + through_table(5)) & 0x7f);
    int status;
    waitpid(child, &status, 0);
    printf("%ld %d %d\n", sum, numbers[250], WEXITSTATUS(status));
    return 0;
}
