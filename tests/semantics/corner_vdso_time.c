#include "sem.h"
int main(void) {
    struct timespec a, b;
    struct timeval v;
    int bad = 0;
    for (int i = 0; i < 10000; i++) { clock_gettime(CLOCK_MONOTONIC, &a); clock_gettime(CLOCK_MONOTONIC, &b); bad += b.tv_sec < a.tv_sec || (b.tv_sec == a.tv_sec && b.tv_nsec < a.tv_nsec); }
    gettimeofday(&v, 0);
    printf("%d %d %d\n", bad, labs(v.tv_sec - time(0)) <= 1, sched_getcpu() >= 0);
}
