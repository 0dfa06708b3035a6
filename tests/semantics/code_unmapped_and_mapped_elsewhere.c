#include "sem.h"
int main(void) {
    long sum = 0;
    for (int i = 0; i < 60; i++) {
        unsigned char *p = mmap((void *)(0x700000000 + (i % 3) * 0x10000), 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        unsigned char c[] = {0xb8, i, 0, 0, 0, 0xc3};
        memcpy(p, c, 6);
        sum = sum * 7 % 1000003 + ((int (*)(void))p)();
        if (i % 2) munmap(p, 4096);
    }
    printf("%ld\n", sum);
}
