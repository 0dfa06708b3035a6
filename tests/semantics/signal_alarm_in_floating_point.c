// cc: -O2 -mavx2 -lm
#include "sem.h"
#include <math.h>
static volatile int n;
static void h(int s, siginfo_t *i, void *c) { volatile double d = n; n++; d = sqrt(d) * 1e300; float v[8] = {1, 2, 3}; for (int k = 0; k < 8; k++) d += v[k] * k; }
__attribute__((noinline)) static double f(void) { double s = 0, v[64]; for (int i = 0; i < 64; i++) v[i] = sqrt(i + 1); for (int t = 0; t < 2000; t++) for (int i = 0; i < 64; i++) s += v[i] / (t + 1); return s; }
int main(void) {
    on(SIGALRM, h, 0);
    double want = f();
    every(700);
    int bad = 0;
    while (n < 300) bad += f() != want;
    every(0);
    printf("%d\n", bad);
}
