#include "sem.h"
static volatile int n;
static void h(int s, siginfo_t *i, void *c) { n++; }
int main(void) {
    on(SIGALRM, h, SA_RESTART);
    every(500);
    long bad = 0, pid = getpid();
    while (n < 300) {
        bad += syscall(SYS_getpid) != pid;
        bad += syscall(SYS_getppid) != getppid();
        bad += syscall(SYS_close, 77777) != -1 || errno != EBADF;
    }
    every(0);
    printf("%ld\n", bad);
}
