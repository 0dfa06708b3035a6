// cc: -O1 -z execstack
// Signals arrive while code on the same page of the stack has been running.
#include "sem.h"

static volatile int ticks;
static void tick(int sig UNUSED, siginfo_t *info UNUSED, void *context UNUSED) { ticks++; }

int main(void) {
    struct sigaction a = {.sa_sigaction = tick, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGALRM, &a, 0) == 0);
    every(1000);
    unsigned long sum = 0;
    while (ticks < 50) {
        volatile int base = 3;
        __attribute__((noinline)) int nested(int x) { return x + base; }
        int (*volatile f)(int) = nested;
        for (int i = 0; i < 200; i++) sum += (unsigned long)f(i);
    }
    every(0);
    printf("%d %d\n", ticks >= 50, sum > 0);
    return 0;
}
