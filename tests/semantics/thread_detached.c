#include "sem.h"
static atomic_int left = 50;
static void *f(void *x) { work(100); left--; return 0; }
int main(void) {
    for (int i = 0; i < 50; i++) { pthread_t t; CHECK(pthread_create(&t, 0, f, 0) == 0); pthread_detach(t); }
    while (left) usleep(100);
    printf("done\n");
}
