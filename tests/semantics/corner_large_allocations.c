#include "sem.h"
int main(void) {
    char *p = mmap(0, 8L << 30, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(p != MAP_FAILED);
    for (long i = 0; i < 8L << 30; i += 512L << 20) p[i] = 1;
    void *b = sbrk(0);
    CHECK(sbrk(64 << 20) == b);
    memset(b, 5, 64 << 20);
    printf("%d\n", ((char *)b)[12345]);
}
