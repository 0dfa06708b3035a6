// Two threads count the letters of a text, each in a row of its own of the same array.
#include <pthread.h>
#include <stdio.h>

#ifndef ROW
#define ROW 4
#endif

enum { THREADS = 2, BYTES = 200000 };

static unsigned char text[BYTES];
static _Alignas(64) long counts[THREADS][ROW];
static pthread_barrier_t all_are_there;

static void *count(void *number) {
    long me = (long)number;
    pthread_barrier_wait(&all_are_there);
    for (int i = me * BYTES / THREADS; i < (me + 1) * BYTES / THREADS; i++)
        counts[me][text[i] % 4]++;
    pthread_barrier_wait(&all_are_there);
    return 0;
}

int main(void) {
    for (int i = 0; i < BYTES; i++)
        text[i] = i * i / 7;
    pthread_t threads[THREADS];
    pthread_barrier_init(&all_are_there, 0, THREADS);
    for (long n = 0; n < THREADS; n++)
        pthread_create(&threads[n], 0, count, (void *)n);
    for (int n = 0; n < THREADS; n++)
        pthread_join(threads[n], 0);
    long sum = 0;
    for (int n = 0; n < THREADS; n++)
        for (int k = 0; k < 4; k++)
            sum += counts[n][k];
    printf("%ld\n", sum);
}
