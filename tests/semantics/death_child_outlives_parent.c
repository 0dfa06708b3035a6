#include "sem.h"
int main(void) {
    int p[2];
    CHECK(pipe(p) == 0);
    if (fork() == 0) { if (fork() == 0) { close(p[0]); usleep(100000); write(p[1], "late\n", 5); _exit(0); } _exit(0); }
    close(p[1]);
    wait(0);
    char b[9];
    int n = read(p[0], b, 9);
    printf("%.*s", n, b);
}
