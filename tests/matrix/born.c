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
    for (volatile int i = 0; i < 300; i++) {
    }
}

static void *thread(void *of) {
    for (int i = 0; i < 20; i++) {
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

static void *brief(void *of) {
    work();
    return of;
}

enum { DUMPING = 2, BRIEF = 30 };

int main(void) {
    pthread_t waiter, dumping[DUMPING], t[BRIEF];
    if (pipe(ends) != 0 || pthread_create(&waiter, 0, waiting, 0) != 0)
        return 1;
    for (int i = 0; i < DUMPING; i++)
        pthread_create(&dumping[i], 0, thread, 0);
    for (int i = 0; i < BRIEF; i++) {
        pthread_create(&t[i], 0, brief, 0);
        if (i % 5 == 0 && write(ends[1], "x", 1) != 1)
            return 1;
    }
    for (int i = 0; i < BRIEF; i++)
        pthread_join(t[i], 0);
    for (int i = 0; i < DUMPING; i++)
        pthread_join(dumping[i], 0);
    pthread_join(waiter, 0);
    puts("done");
    return 0;
}
