#include "sem.h"
static void h(int s, siginfo_t *i, void *c) { printf("once\n"), fflush(stdout); }
int main(void) { on(SIGUSR1, h, SA_RESETHAND); raise(SIGUSR1); raise(SIGUSR1); printf("not reached\n"); }
