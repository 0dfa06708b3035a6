// cc: -O1
// Allocates where instructions are counted and where they are not.
#include <cachegrind.h>
#include <stdio.h>
#include <stdlib.h>

static volatile char *volatile kept;

__attribute__((noinline)) static void take(int blocks, size_t size) {
    for (int i = 0; i < blocks; i++) {
        kept = malloc(size); // take
        kept[size - 1] = 1;
        free((void *)kept);
    }
}

int main(void) {
    take(7, 100);
    CACHEGRIND_STOP_INSTRUMENTATION;
    take(5, 10);
    CACHEGRIND_START_INSTRUMENTATION;
    take(11, 1000);
    CACHEGRIND_STOP_INSTRUMENTATION;
    take(3, 10000);
    return 0;
}
