/* A pointer chase over 32 MiB: bound by memory, not by instructions. */
#include <stdio.h>
#include <stdlib.h>
enum { N = (32 << 20) / sizeof(void *) };
static void *cell[N];
static unsigned order[N];
int main(int argc, char **argv) {
    unsigned long state = 1;
    long steps = argc > 1 ? atol(argv[1]) : 6000000;
    for (unsigned i = 0; i < N; i++) order[i] = i;
    for (unsigned i = N - 1; i > 0; i--) {
        state = state * 6364136223846793005 + 1442695040888963407;
        unsigned j = (state >> 33) % (i + 1), o = order[i];
        order[i] = order[j];
        order[j] = o;
    }
    for (unsigned i = 0; i < N; i++) cell[order[i]] = &cell[order[(i + 1) % N]];
    void **p = cell;
    while (steps--) p = *p;
    return printf("%ld\n", (long)(p - cell)) < 0;
}
