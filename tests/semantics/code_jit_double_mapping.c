#include "sem.h"
int main(void) {
    int f = memfd_create("j", 0);
    CHECK(ftruncate(f, 4096) == 0);
    unsigned char *w = mmap(0, 4096, 3, MAP_SHARED, f, 0), *x = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, f, 0);
    long sum = 0;
    for (int i = 0; i < 200; i++) {
        unsigned char c[] = {0xb8, i, i >> 8, 0, 0, 0xc3};
        memcpy(w, c, sizeof c);
        sum += ((int (*)(void))x)();
    }
    printf("%ld\n", sum);
}
