#include "sem.h"
#include <poll.h>
static void h(int s, siginfo_t *i, void *c) { printf("handler\n"); }
int main(void) {
    on(SIGUSR1, h, 0);
    sigset_t m, none;
    sigemptyset(&none), sigemptyset(&m), sigaddset(&m, SIGUSR1);
    sigprocmask(SIG_BLOCK, &m, 0);
    raise(SIGUSR1);
    printf("before\n");
    int r = ppoll(0, 0, 0, &none);
    printf("%d %d\n", r, errno == EINTR);
}
