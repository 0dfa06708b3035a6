// cc: -O1 -fno-optimize-sibling-calls -pthread
// Allocates through functions around malloc: who has called them tells blocks apart. Prints how many blocks and bytes each chain of
// calls has been handed, by the lines of the calls, the nearest first; and what all of them come to.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEP __attribute__((noinline, noclone))

static void *volatile kept;
static volatile int depth;

static KEEP void *take(size_t size) {
    void *p = malloc(size); // take
    kept = p;
    return p;
}

static KEEP void *text(size_t size) {
    char *p = take(size + 1); // text
    p[size] = 0;
    return p;
}

static KEEP void *list(size_t n) {
    char *p = take(8 * n); // list
    memset(p, 1, 8 * n);
    return p;
}

static KEEP void deep(int n) {
    if (n > 0) {
        deep(n - 1); // deep
        depth = n;
        return;
    }
    free(text(100)); // bottom
}

static void *thread(void *of) {
    for (int i = 0; i < 7; i++)
        free(list(3)); // thread
    return of;
}

static void handler(int signal) {
    (void)signal;
    free(take(24)); // handler
}

int main(int argc, char **argv) {
    (void)argv;
    for (int i = 0; i < 10; i++)
        free(text(10)); // main text
    for (int i = 0; i < 20; i++)
        free(list(10)); // main list
    for (int i = 0; i < 3; i++)
        free(take(1000)); // main take
    deep(5); // main deep
    void *grown = realloc(take(64), 6400); // main grown
    free(grown);
    signal(SIGUSR1, handler);
    for (int i = 0; i < 4; i++)
        raise(SIGUSR1);
    if (argc > 1) {
        pthread_t t[2];
        for (int i = 0; i < 2; i++)
            pthread_create(&t[i], 0, thread, 0);
        for (int i = 0; i < 2; i++)
            pthread_join(t[i], 0);
    }
    puts("done");
    return 0;
}
