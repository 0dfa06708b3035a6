#include "sem.h"
static int faults;
static void h(int s, siginfo_t *i, void *c) { faults++; CHECK(mprotect((void *)((unsigned long)i->si_addr & -4096), 4096, PROT_READ | PROT_WRITE) == 0); }
int main(void) {
    on(SIGSEGV, h, 0);
    char *p = mmap(0, 4096 * 64, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long sum = 0;
    for (int i = 0; i < 4096 * 64; i += 512) p[i] = i >> 9, sum += p[i];
    memset(p, 7, 4096 * 64);
    printf("%d %ld\n", faults, sum);
}
