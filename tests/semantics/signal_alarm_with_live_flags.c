// cc: -O2
#include "sem.h"
static volatile int n;
static void h(int s, siginfo_t *i, void *c) { n++; }
static unsigned long chain(unsigned long k) {
    unsigned long r = 0;
    __asm__ volatile("1: stc\nmov %1, %%rax\njmp 2f\n2: adc $0, %0\nsub $1, %%rax\njmp 3f\n3: ja 4f\ncmc\n4: sbb $0, %0\nlea 5f(%%rip), %%rax\n"
                     "cmp $7, %1\njmp *%%rax\n5: adc $1, %0\ndec %1\njnz 1b" : "+r"(r), "+r"(k) : : "rax", "cc");
    return r;
}
int main(void) {
    on(SIGALRM, h, 0);
    unsigned long want = chain(20000), bad = 0;
    every(500);
    while (n < 300) bad += chain(20000) != want;
    every(0);
    printf("%lu\n", bad);
}
