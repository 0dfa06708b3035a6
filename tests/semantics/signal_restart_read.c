#include "sem.h"
static void h(int s, siginfo_t *i, void *c) {}
static void try(int flags) {
    int p[2];
    CHECK(pipe(p) == 0);
    on(SIGALRM, h, flags);
    if (fork() == 0) { usleep(300000); write(p[1], "x", 1); _exit(0); }
    every(20000);
    char b;
    int n = read(p[0], &b, 1);
    printf("%d %s\n", n, n < 0 ? strerror(errno) : "data");
    every(0);
    while (wait(0) < 0) {}
}
int main(void) { try(SA_RESTART); try(0); }
