/* Two threads, one of which has three times the work of the other. */
#include <pthread.h>
#include <stdio.h>

static unsigned results[2];
static pthread_barrier_t both_run;

unsigned mix(unsigned rounds)
{
    unsigned value = 1;
    for (unsigned i = 0; i < rounds; i++)
        value = value * 1664525 + 1013904223;
    return value;
}

static void *work(void *number)
{
    int n = *(int *)number;
    pthread_barrier_wait(&both_run);
    results[n] = mix(n ? 300000 : 100000);
    return NULL;
}

int main(void)
{
    pthread_t thread[2];
    int number[2] = {0, 1};
    pthread_barrier_init(&both_run, NULL, 2);
    for (int n = 0; n < 2; n++)
        pthread_create(&thread[n], NULL, work, &number[n]);
    for (int n = 0; n < 2; n++)
        pthread_join(thread[n], NULL);
    printf("%08x %08x\n", results[0], results[1]);
    return 0;
}
