// cc: -O0
#include "sem.h"
static char other[65536];
static sigjmp_buf back;
static void h(int s, siginfo_t *i, void *c) { siglongjmp(back, 1); }
__attribute__((noinline)) static int deep(int n) { volatile char a[4096]; a[0] = n; return deep(n + 1) + a[0]; }
int main(void) {
    stack_t t = {other, 0, sizeof other};
    sigaltstack(&t, 0);
    on(SIGSEGV, h, SA_ONSTACK);
    for (int i = 0; i < 3; i++) if (sigsetjmp(back, 1) == 0) deep(0); else printf("overflow %d\n", i);
}
