#include "sem.h"
static pthread_barrier_t b;
static atomic_ulong sum;
static void *f(void *x) { pthread_barrier_wait(&b); sum += work(1000 + (long)x) & 0xffff; pthread_barrier_wait(&b); return x; }
int main(void) {
    pthread_t t[200];
    pthread_barrier_init(&b, 0, 201);
    for (long i = 0; i < 200; i++) CHECK(pthread_create(t + i, 0, f, (void *)i) == 0);
    pthread_barrier_wait(&b);
    pthread_barrier_wait(&b);
    long n = 0;
    for (int i = 0; i < 200; i++) { void *r; pthread_join(t[i], &r); n += (long)r; }
    printf("%ld %lu\n", n, sum);
}
