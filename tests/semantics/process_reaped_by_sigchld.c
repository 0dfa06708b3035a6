#include "sem.h"
static volatile int n;
static void h(int s, siginfo_t *i, void *c) { int st; while (waitpid(-1, &st, WNOHANG) > 0) n++; }
int main(void) {
    on(SIGCHLD, h, SA_RESTART);
    for (int i = 0; i < 20; i++) if (fork() == 0) { usleep(1000 * i); _exit(0); }
    while (n < 20) usleep(1000);
    printf("%d\n", n);
    struct sigaction a = {.sa_handler = SIG_IGN};
    sigaction(SIGCHLD, &a, 0);
    if (fork() == 0) _exit(0);
    // The ignored child's end may interrupt the call, or not.
    int r;
    do r = wait(0); while (r < 0 && errno == EINTR);
    printf("%d %s\n", r, strerror(errno));
}
