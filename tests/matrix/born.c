// cc: -pthread
// Threads that are born, wait and end while others call `take`, before each call of which a part may end.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone))

static volatile int kept;
static int ends[2];

static KEEP void take(int n) {
    kept = n;
}

static KEEP void work(void) {
    for (volatile int i = 0; i < 3000; i++) {
    }
}

static void *thread(void *of) {
    for (int i = 0; i < 5; i++) {
        take(i);
        work();
    }
    return of;
}

static KEEP void waits(void) {
    char byte;
    if (read(ends[0], &byte, 1) != 1)
        puts("no byte");
}

static void *waiting(void *of) {
    for (int i = 0; i < 6; i++)
        waits();
    return of;
}

int main(void) {
    pthread_t waiter, t[3];
    if (pipe(ends) != 0 || pthread_create(&waiter, 0, waiting, 0) != 0)
        return 1;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++)
            pthread_create(&t[i], 0, thread, 0);
        for (int i = 0; i < 3; i++) {
            pthread_join(t[i], 0);
            if (write(ends[1], "x", 1) != 1)
                return 1;
        }
    }
    pthread_join(waiter, 0);
    puts("done");
    return 0;
}
