// cc: -O1
#include "sem.h"
static volatile int n;
static void h(int s, siginfo_t *i, void *c) { n++; }
__attribute__((noinline)) static long fib(long k) { return k < 2 ? k : fib(k - 1) + fib(k - 2); }
int main(void) {
    on(SIGALRM, h, 0);
    every(500);
    long bad = 0;
    while (n < 300) bad += fib(18) != 2584;
    every(0);
    printf("%ld\n", bad);
}
