#include "sem.h"
#include <sys/prctl.h>
int main(void) {
    int p[2];
    CHECK(pipe(p) == 0);
    if (fork() == 0) {
        if (fork() == 0) { prctl(PR_SET_PDEATHSIG, SIGKILL); write(p[1], "x", 1); for (;;) pause(); }
        char b;
        read(p[0], &b, 1);
        _exit(0);
    }
    wait(0);
    close(p[1]);
    char b;
    printf("%zd\n", read(p[0], &b, 1));
}
