// A child has its parent's stack of contexts, and its counts so far.
#include <sys/wait.h>
#include <unistd.h>
#include "cachegrind.h"
#define APART __attribute__((noinline))
APART static void work(unsigned n) { for (volatile unsigned i = 0; i < n; i++) ; }
int main(void) {
    int status;
    pid_t child;
    CG_PUSH_CONTEXT_NAMED("outer");
    work(10);
    CG_PUSH_CONTEXT(2);
    work(20);
    child = fork();
    if (child == 0) {
        work(30);
        CG_POP_CONTEXT();
        work(40);
        CG_PUSH_CONTEXT_NAMED("child");
        work(50);
        CG_POP_CONTEXT();
        CG_PUSH_CONTEXT_NAMED("outer");
        CG_POP_CONTEXT();
        CG_POP_CONTEXT();
        work(60);
        _exit(0);
    }
    waitpid(child, &status, 0);
    work(70);
    CG_POP_CONTEXT();
    CG_POP_CONTEXT();
    return status;
}
