#include "sem.h"
static volatile int n;
static void h(int s, siginfo_t *i, void *c) { n++; }
static char a[1 << 20], b[1 << 20];
int main(void) {
    for (int i = 0; i < 1 << 20; i++) a[i] = i * 7;
    on(SIGALRM, h, 0);
    every(500);
    int bad = 0;
    while (n < 200) {
        void *d = b, *s = a;
        long c = 1 << 20;
        __asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(c) : : "memory");
        bad += (char *)d != b + (1 << 20) || c || b[12345] != a[12345] || b[(1 << 20) - 1] != a[(1 << 20) - 1];
        d = b, c = 1 << 20;
        __asm__ volatile("std\nrep stosb\ncld" : "+D"(d), "+c"(c) : "a"(1) : "memory");
        (void)0;
    }
    every(0);
    printf("%d\n", bad);
}
