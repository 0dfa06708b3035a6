#include "sem.h"
static __thread int mine;
static atomic_int total, ready;
static void h(int s, siginfo_t *i, void *c) { mine++; total++; }
static void *f(void *x) { ready++; while (mine < 30) work(10); return (void *)(long)mine; }
int main(void) {
    on(SIGUSR1, h, 0);
    pthread_t t[4];
    for (int i = 0; i < 4; i++) pthread_create(t + i, 0, f, 0);
    while (ready < 4) usleep(100);
    for (int k = 0; k < 30; k++) for (int i = 0; i < 4; i++) { int before = total; pthread_kill(t[i], SIGUSR1); while (total == before) usleep(10); }
    for (int i = 0; i < 4; i++) { void *r; pthread_join(t[i], &r); printf("%ld\n", (long)r); }
}
