#include "sem.h"
static __thread long a = 7, b;
static __thread char buffer[5000];
static void *f(void *x) { for (long i = 0; i < 1000; i++) a += (long)x, b ^= a, buffer[i * 5] = a; return (void *)(a + b + buffer[50]); }
int main(void) {
    pthread_t t[6];
    for (long i = 0; i < 6; i++) pthread_create(t + i, 0, f, (void *)i);
    for (int i = 0; i < 6; i++) { void *r; pthread_join(t[i], &r); printf("%ld\n", (long)r); }
    printf("%ld %ld\n", a, b);
}
