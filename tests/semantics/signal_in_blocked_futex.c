#include "sem.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static volatile int n;
static void h(int s, siginfo_t *i, void *c) { n++; }
static void *f(void *x) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); return x; }
int main(void) {
    on(SIGUSR1, h, 0);
    pthread_mutex_lock(&m);
    pthread_t t;
    pthread_create(&t, 0, f, 0);
    for (int i = 0; i < 20; i++) { int before = n; pthread_kill(t, SIGUSR1); while (n == before) usleep(100); }
    pthread_mutex_unlock(&m);
    pthread_join(t, 0);
    printf("%d\n", n);
}
