#include "sem.h"
static volatile int n;
static void h(int s, siginfo_t *i, void *c) { n++; }
int main(void) {
    on(SIGALRM, h, 0);
    every(1000);
    unsigned long x = 0, reference = work(100000);
    while (n < 300) x |= work(100000) ^ reference;
    every(0);
    printf("%lx\n", x);
}
