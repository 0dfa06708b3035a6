#include "sem.h"
static unsigned char *p;
static atomic_int stage;
static void *f(void *x) { for (int i = 1; i < 100; i++) { while (stage != 2 * i - 1) sched_yield(); p[1] = i; stage = 2 * i; } return 0; }
int main(void) {
    p = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char c[] = {0xb8, 0, 0, 0, 0, 0xc3};
    memcpy(p, c, sizeof c);
    pthread_t t;
    pthread_create(&t, 0, f, 0);
    long sum = 0;
    for (int i = 1; i < 100; i++) { sum += ((int (*)(void))p)(); stage = 2 * i - 1; while (stage != 2 * i) sched_yield(); sum = sum * 2 % 1000003 + ((int (*)(void))p)(); }
    pthread_join(t, 0);
    printf("%ld\n", sum);
}
