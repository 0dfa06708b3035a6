// cc: -O1 -pthread
// Threads wait in the other system calls, those of int 0x80, while all translations are thrown away.
#include "eviction.h"
#include <poll.h>

enum { THREADS = 3, ROUNDS = 200 };
enum { NR_READ = 3, NR_NANOSLEEP = 162, NR_POLL = 168 };

static int call(int nr, int a, void *b, int c) {
    int r;
    __asm__ volatile("int $0x80" : "=a"(r) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory", "r8", "r9", "r10", "r11");
    return r;
}
// What such a call can point to.
struct low { char byte; struct pollfd poll; int time[2]; };
static struct low *low(void) {
    void *p = mmap(0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    CHECK(p != MAP_FAILED);
    return p;
}
static int ends[2][2];
// What they have got, in the order of the threads.
static char got[THREADS][40];

static void *reads(void *arg UNUSED) {
    struct low *l = low();
    int r = call(NR_READ, ends[0][0], &l->byte, 1);
    snprintf(got[1], sizeof got[0], "read %d %c", r, l->byte);
    return 0;
}
static void *polls(void *arg UNUSED) {
    struct low *l = low();
    l->poll = (struct pollfd){.fd = ends[1][0], .events = POLLIN};
    int r = call(NR_POLL, (int)(long)&l->poll, (void *)1, 100000);
    snprintf(got[2], sizeof got[0], "poll %d %d", r, l->poll.revents);
    return 0;
}
static void *sleeps(void *arg UNUSED) {
    struct low *l = low();
    l->time[1] = 400 * 1000 * 1000;
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    int r = call(NR_NANOSLEEP, (int)(long)l->time, 0, 0);
    clock_gettime(CLOCK_MONOTONIC, &to);
    long ms = (to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000;
    snprintf(got[0], sizeof got[0], "slept %d %d", r, ms >= 400);
    return 0;
}

int main(void) {
    static void *(*const waits[THREADS])(void *) = {sleeps, reads, polls};
    pthread_t t[THREADS];
    CHECK(pipe(ends[0]) == 0 && pipe(ends[1]) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&t[i], 0, waits[i], 0) == 0);
    printf("%lu\n", evict(area(), ROUNDS));
    CHECK(pthread_join(t[0], 0) == 0);
    CHECK(write(ends[0][1], "x", 1) == 1 && pthread_join(t[1], 0) == 0);
    CHECK(write(ends[1][1], "y", 1) == 1 && pthread_join(t[2], 0) == 0);
    for (int i = 0; i < THREADS; i++) puts(got[i]);
    return 0;
}
