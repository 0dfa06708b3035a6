#include "sem.h"
static void *f(void *x) { usleep(50000); printf("still here\n"); return 0; }
int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); pthread_exit(0); }
