// Code that is written anew again and again, run in contexts that change at every turn, by two threads: whatever is thrown
// away of its translations, and when, each context's share is known beforehand. Natively and under the reference the same.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include "cachegrind.h"
#define APART __attribute__((noinline))
enum { BLOCKS = 2000, ROUNDS = 90 };
typedef unsigned long Code(unsigned long);
static void build(unsigned char *p, unsigned seed) {
    memcpy(p, "\x48\x89\xf8", 3); // mov rax, rdi
    p += 3;
    for (int i = 0; i < BLOCKS; i++, p += 14) {
        seed = seed * 1103515245 + 12345;
        memcpy(p, "\x48\x05....\x48\xc1\xc0\x05\xa8\x04\x74\x00", 14); // add, rol, test, je to the next
        memcpy(p + 2, &seed, 4);
        p[5] &= 0x7f;
    }
    *p = 0xc3;
}
APART static unsigned long work(unsigned long n) {
    for (unsigned long i = 0; i < 100; i++) n = n * 6364136223846793005 + i;
    return n;
}
static void *rewrite(void *arg) {
    unsigned char *area = mmap(0, BLOCKS * 14 + 16, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned long h = 1, base = (unsigned long)arg;
    for (unsigned r = 0; r < ROUNDS; r++) {
        build(area, r + (unsigned)base);
        CG_PUSH_CONTEXT(base + r % 3);
        h = work(((Code *)area)(h));
        CG_PUSH_CONTEXT(base + 5);
        h = work(((Code *)area)(h));
        CG_POP_CONTEXT();
        h = work(h);
        CG_POP_CONTEXT();
    }
    return (void *)h;
}
int main(void) {
    pthread_t t;
    void *a, *b;
    a = rewrite((void *)10);
    if (pthread_create(&t, 0, rewrite, (void *)20) || pthread_join(t, &b)) return 9;
    printf("%p %p\n", a, b);
    return 0;
}
