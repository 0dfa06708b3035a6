// What programs have in common whose sites are compared: SITES of them, each block's accesses counted by the line that has made it.
// Between any two accesses a program is elsewhere, so that each misses a cache of two lines.
#include <stddef.h>
#include <stdint.h>

static int line[SITES];
static unsigned long counts[SITES][2];
static volatile char elsewhere[256] __attribute__((aligned(64)));
static uint64_t state = 1;

static uint64_t next(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

// Accesses `size` bytes, which belong to this site, USES times.
static void use(volatile char *at, size_t size, int site) {
    for (int n = 0; n < USES; n++) {
        size_t place = next() % size;
        int write = next() % 2;
        elsewhere[64] = elsewhere[128] = 1;
        if (write)
            at[place] = n;
        else
            (void)at[place];
        counts[site][write]++;
    }
}
