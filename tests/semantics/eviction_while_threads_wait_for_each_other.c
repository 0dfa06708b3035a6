// cc: -O1 -pthread
// Threads rewrite their code, run it and wait for each other, while others are signalled, sleep, are born and end. With a small
// code cache all of them have to stop again and again; none may be forgotten, wherever it was told.
#include "eviction.h"
#include <semaphore.h>
#include <sys/epoll.h>

enum { WORKERS = 6, ROUNDS = 24 };

static pthread_barrier_t all;
static sem_t go;
static int ends[2], poller;
static atomic_int ticks, slept;
static pthread_t workers[WORKERS];

static void tick(int sig UNUSED, siginfo_t *info UNUSED, void *context UNUSED) { ticks++; }

static void *rewrite(void *arg) {
    unsigned char *code = area();
    unsigned long h = (unsigned long)arg;
    for (unsigned round = 0; round < ROUNDS; round++) {
        build(code, round);
        h = ((Code *)code)(h);
        pthread_barrier_wait(&all);
    }
    return (void *)h;
}
static void *once(void *arg) {
    unsigned char *code = area();
    build(code, 7);
    unsigned long h = ((Code *)code)((unsigned long)arg);
    munmap(code, PAGES * PAGE);
    return (void *)h;
}
static void *sleeps(void *arg UNUSED) {
    while (sem_wait(&go)) CHECK(errno == EINTR);
    slept++;
    return 0;
}
static void *reads(void *arg UNUSED) {
    char c;
    CHECK(read(ends[0], &c, 1) == 1);
    slept++;
    return 0;
}
static void *polls(void *arg UNUSED) {
    struct epoll_event e;
    CHECK(epoll_wait(poller, &e, 1, -1) == 1);
    slept++;
    return 0;
}

int main(void) {
    static void *(*const others[])(void *) = {sleeps, reads, polls};
    int pipe2[2];
    pthread_t waiting[3], t;
    void *r;
    unsigned long sum = 0;
    on(SIGUSR1, tick, SA_RESTART);
    CHECK(pthread_barrier_init(&all, 0, WORKERS + 1) == 0 && sem_init(&go, 0, 0) == 0 && pipe(ends) == 0 && pipe(pipe2) == 0);
    CHECK((poller = epoll_create1(0)) >= 0);
    CHECK(epoll_ctl(poller, EPOLL_CTL_ADD, pipe2[0], &(struct epoll_event){.events = EPOLLIN}) == 0);
    for (int i = 0; i < 3; i++) CHECK(pthread_create(&waiting[i], 0, others[i], 0) == 0);
    for (long i = 0; i < WORKERS; i++) CHECK(pthread_create(&workers[i], 0, rewrite, (void *)i) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        CHECK(pthread_create(&t, 0, once, (void *)(long)round) == 0);
        CHECK(pthread_kill(workers[round % WORKERS], SIGUSR1) == 0);
        CHECK(pthread_kill(waiting[round % 2], SIGUSR1) == 0);
        CHECK(pthread_join(t, &r) == 0);
        sum += (unsigned long)r;
        pthread_barrier_wait(&all);
    }
    for (int i = 0; i < WORKERS; i++) CHECK(pthread_join(workers[i], &r) == 0), sum += (unsigned long)r;
    CHECK(sem_post(&go) == 0 && write(ends[1], "x", 1) == 1 && write(pipe2[1], "x", 1) == 1);
    for (int i = 0; i < 3; i++) CHECK(pthread_join(waiting[i], 0) == 0);
    printf("%lu %d %d\n", sum, ticks > 0, slept);
    return 0;
}
