#include "sem.h"
static char stack[65536] __attribute__((aligned(16)));
static atomic_int shared;
static int f(void *x) { shared = 5; return 3; }
int main(void) {
    int tid = clone(f, stack + sizeof stack, CLONE_VM | SIGCHLD, 0), s;
    CHECK(waitpid(tid, &s, 0) == tid);
    show_status(s);
    printf("%d\n", shared);
    tid = clone(f, stack + sizeof stack, SIGCHLD, 0);
    shared = 1;
    waitpid(tid, &s, 0);
    printf("%d\n", shared);
}
