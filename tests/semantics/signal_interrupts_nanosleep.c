#include "sem.h"
static void h(int s, siginfo_t *i, void *c) {}
int main(void) {
    on(SIGALRM, h, SA_RESTART);
    struct timespec t = {5, 0}, rest = {0, 0};
    every(50000);
    int r = nanosleep(&t, &rest);
    printf("%d %d %d\n", r, errno == EINTR, rest.tv_sec >= 3);
}
