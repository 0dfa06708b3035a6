#include "sem.h"
int main(void) {
    unsigned char *p = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long sum = 0;
    for (int i = 0; i < 300; i++) {
        unsigned char c[] = {0xb8, i, i >> 8, 0, 0, 0x83, 0xc0, i % 100, 0xc3};
        memcpy(p, c, sizeof c);
        sum += ((int (*)(void))p)();
    }
    printf("%ld\n", sum);
}
