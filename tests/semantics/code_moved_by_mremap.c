#include "sem.h"
int main(void) {
    unsigned char *p = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char c[] = {0x8d, 0x05, 1, 0, 0, 0, 0xb8, 9, 0, 0, 0, 0xc3};
    memcpy(p, c, sizeof c);
    printf("%d\n", ((int (*)(void))p)());
    unsigned char *q = mremap(p, 4096, 8192, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)0x680000000);
    CHECK(q == (void *)0x680000000);
    q[7] = 10;
    printf("%d\n", ((int (*)(void))q)());
    p = mmap(p, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    c[7] = 11;
    memcpy(p, c, sizeof c);
    printf("%d %d\n", ((int (*)(void))p)(), ((int (*)(void))q)());
}
