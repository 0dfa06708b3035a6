#include <pthread.h>
#include <stdio.h>
static long work(long n) { long s = 0; for (long i = 0; i < n; i++) s += i * i % 7; return s; }
static void phase(long n) { printf("%ld\n", work(n)); }
static void *run(void *p) { work((long)p); return 0; }
int main(void) { pthread_t t[2]; for (long i = 0; i < 2; i++) pthread_create(&t[i], 0, run, (void *)(1000 * (i + 1))); for (int i = 0; i < 2; i++) pthread_join(t[i], 0); for (int i = 1; i < 4; i++) phase(500 * i); return 0; }
