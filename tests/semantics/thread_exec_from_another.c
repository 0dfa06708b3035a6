#include "sem.h"
static void *f(void *x) { execl("/bin/echo", "echo", "replaced", (char *)0); return 0; }
static void *g(void *x) { for (;;) work(1000); return x; }
int main(void) { if (fork() == 0) { pthread_t t; pthread_create(&t, 0, g, 0); pthread_create(&t, 0, f, 0); for (;;) pause(); } int s; wait(&s); show_status(s); }
