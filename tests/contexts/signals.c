// Signals come while contexts change; the handler changes them, too.
#include <signal.h>
#include <sys/time.h>
#include "cachegrind.h"
#define APART __attribute__((noinline))
static volatile int handled;
APART static void work(unsigned n) { for (volatile unsigned i = 0; i < n; i++) ; }
APART static void in_handler(unsigned n) { for (volatile unsigned i = 0; i < n; i++) ; }
static void handler(int signal) {
    (void)signal;
    CG_PUSH_CONTEXT(9);
    in_handler(5);
    CG_POP_CONTEXT();
    handled++;
}
int main(void) {
    struct itimerval every = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {0};
    action.sa_handler = handler;
    sigaction(SIGALRM, &action, 0);
    setitimer(ITIMER_REAL, &every, 0);
    for (int i = 0; i < 200000 || handled < 20; i++) {
        CG_PUSH_CONTEXT(1 + i % 2);
        work(i % 2 ? 3 : 2);
        CG_POP_CONTEXT();
    }
    setitimer(ITIMER_REAL, &never, 0);
    return 0;
}
