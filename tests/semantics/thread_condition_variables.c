#include "sem.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int turn, log_[400], n;
static void *f(void *x) {
    long me = (long)x;
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&m);
        while (turn != me) pthread_cond_wait(&c, &m);
        log_[n++] = me;
        turn = (me + 1) % 4;
        pthread_cond_broadcast(&c);
        pthread_mutex_unlock(&m);
    }
    return 0;
}
int main(void) {
    pthread_t t[4];
    for (long i = 0; i < 4; i++) pthread_create(t + i, 0, f, (void *)i);
    for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
    int bad = 0;
    for (int i = 0; i < 400; i++) bad += log_[i] != i % 4;
    printf("%d %d\n", n, bad);
}
