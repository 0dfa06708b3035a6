/* Threads that each work over an array of their own: nothing shared but the program. Arguments: threads, rounds in all. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
enum { N = 4096 };
static int threads, rounds;
static void *work(void *argument) {
    unsigned *v = malloc(N * sizeof *v), sum = (unsigned)(long)argument;
    for (int i = 0; i < N; i++) v[i] = i * 2654435761u;
    for (int t = 0; t < rounds / threads; t++)
        for (int i = 0; i < N; i++) {
            if (v[i] & 1) sum += v[i] >> 3;
            v[i] = v[i] * 1664525 + sum;
        }
    free(v);
    return (void *)(long)sum;
}
int main(int argc, char **argv) {
    pthread_t t[64];
    unsigned long all = 0;
    threads = argc > 1 ? atoi(argv[1]) : 2;
    rounds = argc > 2 ? atoi(argv[2]) : 160000;
    for (long i = 0; i < threads; i++) pthread_create(t + i, 0, work, (void *)i);
    for (int i = 0; i < threads; i++) {
        void *sum;
        pthread_join(t[i], &sum);
        all += (unsigned long)sum;
    }
    return printf("%lu\n", all) < 0;
}
