// A page of executable memory beside code that has run, written to after mprotect, before and after its own code has run.
#include "sem.h"
typedef int (*fn)(void);
static void put(unsigned char *p, int v) {
    unsigned char code[] = {0xb8, 0, 0, 0, 0, 0xc3};
    memcpy(code + 1, &v, 4);
    memcpy(p, code, sizeof code);
}
int main(void) {
    unsigned char *p = mmap(0, 8 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    for (int i = 0; i < 8; i++) put(p + 4096 * i, i);
    CHECK(mprotect(p, 8 * 4096, PROT_READ | PROT_EXEC) == 0);
    printf("%d\n", ((fn)p)());
    // Known to be executable, never run; from here on written to without a system call.
    CHECK(mprotect(p + 4096, 4096, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
    for (int i = 0; i < 5; i++) {
        put(p + 4096, 100 + i);
        printf("%d\n", ((fn)(p + 4096))());
    }
    // Replaced by a writable mapping at the same place.
    CHECK(mmap(p + 2 * 4096, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
          p + 2 * 4096);
    for (int i = 0; i < 5; i++) {
        put(p + 2 * 4096, 200 + i);
        printf("%d\n", ((fn)(p + 2 * 4096))());
    }
    // Unmapped, and mapped again without a fixed place.
    CHECK(munmap(p + 3 * 4096, 4096) == 0);
    unsigned char *q = mmap(p + 3 * 4096, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(q == p + 3 * 4096);
    for (int i = 0; i < 5; i++) {
        put(q, 300 + i);
        printf("%d\n", ((fn)q)());
    }
    printf("%d\n", ((fn)(p + 4 * 4096))());
}
