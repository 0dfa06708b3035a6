// cc: -O1 -pthread
// Knows by itself of each of its accesses to which block of the heap it goes, and prints the sums by the line that has
// allocated the block: line, reads, writes. Between any two accesses it is elsewhere, so that each misses a cache of two lines.
// With an argument, two more threads take, use, give back and free blocks that others have allocated.
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MALLOC, CALLOC, MEMALIGN, POSIX_MEMALIGN, ALIGNED_ALLOC, REALLOC_0, OLD, GROWN, BY_THREAD, SITES };

static int line[SITES];

struct block {
    volatile char *at;
    size_t size;
    int site;
};

struct counts {
    unsigned long of[SITES][2];
    char apart[64];
};

static volatile char elsewhere[256] __attribute__((aligned(64)));

static uint64_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void use(struct block b, uint64_t *state, struct counts *counts) {
    for (int n = 0; n < 6; n++) {
        size_t place = next(state) % b.size;
        int write = next(state) % 2;
        elsewhere[64] = elsewhere[128] = 1;
        if (write)
            b.at[place] = n;
        else
            (void)b.at[place];
        counts->of[b.site][write]++;
    }
}

static struct block make(int site, size_t size) {
    struct block b = {0, size, site};
    void *p = 0;
    switch (site) {
    case MALLOC: line[site] = __LINE__; p = malloc(size); break;
    case CALLOC: line[site] = __LINE__; p = calloc(size / 4 + 1, 4); break;
    case MEMALIGN: line[site] = __LINE__; p = memalign(128, size); break;
    case POSIX_MEMALIGN: line[site] = __LINE__; if (posix_memalign(&p, 256, size)) p = 0; break;
    case ALIGNED_ALLOC: line[site] = __LINE__; p = aligned_alloc(64, size); break;
    case REALLOC_0: line[site] = __LINE__; p = realloc(0, size); break;
    case OLD: line[site] = __LINE__; p = malloc(size); break;
    case BY_THREAD: line[site] = __LINE__; p = malloc(size); break;
    }
    if (!p)
        abort();
    b.at = p;
    return b;
}

static struct block grow(struct block b, size_t size) {
    line[GROWN] = __LINE__; char *p = realloc((void *)b.at, size);
    if (!p)
        abort();
    return (struct block){p, size, GROWN};
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block shared[64];
static int there, ended;
static struct counts counted[3];

static void give(struct block b) {
    for (;;) {
        pthread_mutex_lock(&lock);
        int done = there < 64;
        if (done)
            shared[there++] = b;
        pthread_mutex_unlock(&lock);
        if (done)
            return;
    }
}

static int take(struct block *b) {
    pthread_mutex_lock(&lock);
    int got = there > 0, end = ended && !got;
    if (got)
        *b = shared[--there];
    pthread_mutex_unlock(&lock);
    return end ? -1 : got;
}

static void *work(void *argument) {
    long number = (long)argument;
    uint64_t state = number;
    struct block b;
    for (int got; (got = take(&b)) >= 0;) {
        if (!got) {
            usleep(300);
            continue;
        }
        use(b, &state, &counted[number]);
        free((void *)b.at);
        struct block own = make(BY_THREAD, 16 + next(&state) % 3000);
        use(own, &state, &counted[number]);
        free((void *)own.at);
    }
    return 0;
}

int main(int argc, char **argv) {
    uint64_t state = 1;
    struct block live[200];
    int n = 0, threads = argc > 1 ? 2 : 0;
    pthread_t thread[2];
    for (long t = 0; t < threads; t++)
        pthread_create(&thread[t], 0, work, (void *)(t + 1));
    for (int round = 0; round < 1500; round++) {
        uint64_t what = next(&state) % 10;
        if (n < 200 && (what < 4 || n == 0)) {
            size_t size = next(&state) % 100 ? 16 + next(&state) % 2000 : 200000;
            live[n++] = make(next(&state) % (OLD + 1), size);
        } else if (what < 7) {
            struct block b = live[next(&state) % n];
            use(b, &state, &counted[0]);
        } else {
            int at = next(&state) % n;
            struct block b = live[at];
            live[at] = live[--n];
            if (b.site == OLD)
                live[n++] = grow(b, b.size + 1 + next(&state) % 5000);
            else if (threads)
                give(b);
            else
                free((void *)b.at);
        }
    }
    pthread_mutex_lock(&lock);
    ended = 1;
    pthread_mutex_unlock(&lock);
    for (int t = 0; t < threads; t++)
        pthread_join(thread[t], 0);
    for (int site = 0; site < SITES; site++) {
        unsigned long sum[2] = {0, 0};
        for (int t = 0; t < 3; t++)
            for (int done = 0; done < 2; done++)
                sum[done] += counted[t].of[site][done];
        if (line[site])
            printf("%d %lu %lu %s\n", line[site], sum[0], sum[1], site == OLD ? "old" : "");
    }
    return 0;
}
