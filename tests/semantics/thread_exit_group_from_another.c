#include "sem.h"
static void *f(void *x) { usleep(20000); printf("leaving\n"); fflush(stdout); _exit(42); }
static void *g(void *x) { for (;;) work(1000); return x; }
int main(void) { pthread_t t; pthread_create(&t, 0, g, 0); pthread_create(&t, 0, f, 0); for (;;) pause(); }
