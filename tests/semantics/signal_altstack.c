#include "sem.h"
static char other[65536];
static volatile int inside;
static void h(int s, siginfo_t *i, void *c) { char x; inside = &x >= other && &x < other + sizeof other; }
int main(void) {
    stack_t t = {other, 0, sizeof other}, old;
    CHECK(sigaltstack(&t, 0) == 0);
    on(SIGUSR1, h, SA_ONSTACK);
    raise(SIGUSR1);
    printf("%d\n", inside);
    CHECK(sigaltstack(0, &old) == 0);
    printf("%d %d\n", old.ss_sp == other, old.ss_flags);
    on(SIGUSR1, h, 0);
    raise(SIGUSR1);
    printf("%d\n", inside);
}
