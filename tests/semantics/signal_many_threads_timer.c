// cc: -pthread
#include "sem.h"
static atomic_int n, stop;
static void h(int s, siginfo_t *i, void *c) { n++; }
static void *f(void *x) { unsigned long want = work(3000); long bad = 0; while (!stop) bad += work(3000) != want; return (void *)bad; }
int main(void) {
    on(SIGALRM, h, 0);
    pthread_t t[8];
    for (int i = 0; i < 8; i++) pthread_create(t + i, 0, f, 0);
    every(1000);
    while (n < 300) work(100);
    every(0);
    stop = 1;
    long bad = 0;
    for (int i = 0; i < 8; i++) { void *r; pthread_join(t[i], &r); bad += (long)r; }
    printf("%ld\n", bad);
}
