// cc: -O1
// Has blocks of all allocators but those that change the size of one.
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    void *live[64] = {0};
    uint64_t state = 1;
    for (int round = 0; round < 20000; round++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        size_t size = 1 + (state >> 40) % 3000;
        void **at = &live[(state >> 34) % 64];
        free(*at);
        *at = 0;
        switch ((state >> 60) % 5) {
        case 0: *at = malloc(size); break;
        case 1: *at = calloc(size / 8 + 1, 8); break;
        case 2: *at = memalign(64, size); break;
        case 3: if (posix_memalign(at, 128, size)) abort(); break;
        case 4: *at = strdup("a copy of a few words"); break;
        }
        memset(*at, 1, 8);
    }
    return 0;
}
