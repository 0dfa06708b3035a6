#include "sem.h"
// The oldest thread wants something again and again, and others keep the profiler busy: it must have its turn, too.
static atomic_int done;
static void *asks(void *x) {
    long sum = 0;
    for (int i = 0; i < 50; i++) sum += syscall(SYS_getppid) > 0;
    done = 1;
    return (void *)sum;
}
static void *spins(void *x) { while (!done) work(10); return 0; }
int main(void) {
    pthread_t t[4];
    for (int i = 0; i < 4; i++) pthread_create(t + i, 0, i ? spins : asks, 0);
    void *sum;
    CHECK(pthread_join(t[0], &sum) == 0);
    for (int i = 1; i < 4; i++) pthread_join(t[i], 0);
    printf("%ld\n", (long)sum);
}
