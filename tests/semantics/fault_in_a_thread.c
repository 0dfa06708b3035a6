#include "sem.h"
static __thread sigjmp_buf back;
static void h(int s, siginfo_t *i, void *c) { siglongjmp(back, 1); }
static void *f(void *x) { volatile long n = 0; for (volatile int i = 0; i < 200; i++) if (sigsetjmp(back, 1) == 0) *(volatile int *)x = 1; else n++; return (void *)n; }
int main(void) {
    on(SIGSEGV, h, 0);
    pthread_t t[4];
    for (long i = 0; i < 4; i++) pthread_create(t + i, 0, f, (void *)(i * 8));
    for (int i = 0; i < 4; i++) { void *r; pthread_join(t[i], &r); printf("%ld\n", (long)r); }
}
