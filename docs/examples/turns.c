// Two threads that hand a number to each other, a thousand times each.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static _Alignas(64) atomic_long turn;
static pthread_barrier_t together;

static void *play(void *me) {
    pthread_barrier_wait(&together);
    for (long n = (long)me; n < 2000; n += 2) {
        while (turn != n) sched_yield();
        atomic_store_explicit(&turn, n + 1, memory_order_release);
    }
    pthread_barrier_wait(&together);
    return 0;
}

int main(void) {
    pthread_t threads[2];
    pthread_barrier_init(&together, 0, 2);
    for (long n = 0; n < 2; n++) pthread_create(&threads[n], 0, play, (void *)n);
    for (int n = 0; n < 2; n++) pthread_join(threads[n], 0);
    return 0;
}
