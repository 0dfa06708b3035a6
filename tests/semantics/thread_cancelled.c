#include "sem.h"
static void cleanup(void *x) { printf("cleanup %s\n", (char *)x); }
static void *f(void *x) { pthread_cleanup_push(cleanup, "f"); for (;;) pause(); pthread_cleanup_pop(0); return 0; }
static void *g(void *x) { pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0); for (;;) work(1000); return 0; }
int main(void) {
    pthread_t t;
    void *r;
    pthread_create(&t, 0, f, 0); usleep(20000); pthread_cancel(t); pthread_join(t, &r); printf("%d\n", r == PTHREAD_CANCELED);
    pthread_create(&t, 0, g, 0); usleep(20000); pthread_cancel(t); pthread_join(t, &r); printf("%d\n", r == PTHREAD_CANCELED);
}
