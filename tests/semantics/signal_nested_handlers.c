#include "sem.h"
static volatile int depth;
static void h(int s, siginfo_t *i, void *c) {
    int here = ++depth;
    printf("in %d\n", here);
    if (here < 10) raise(s);
    printf("out %d\n", here);
}
int main(void) { on(SIGUSR1, h, SA_NODEFER); raise(SIGUSR1); }
