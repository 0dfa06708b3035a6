#include "sem.h"
int main(void) {
    // Programs that look for room: everything between the mappings they know may be asked for.
    int n = 0;
    for (unsigned long a = 0x100000000; a < 0x10000000000; a += 0x1000000000) {
        void *p = mmap((void *)a, 1 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (p == (void *)a) n++, memset(p, 1, 1 << 20), munmap(p, 1 << 20);
    }
    printf("%d\n", n);
}
