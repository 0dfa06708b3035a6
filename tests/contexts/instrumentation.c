// Contexts go on changing while nothing is counted.
#include "cachegrind.h"
#define APART __attribute__((noinline))
APART static void work(unsigned n) { for (volatile unsigned i = 0; i < n; i++) ; }
int main(void) {
    CG_PUSH_CONTEXT(1);
    work(10);
    CACHEGRIND_STOP_INSTRUMENTATION;
    for (int i = 0; i < 1000; i++) {
        CG_PUSH_CONTEXT(3);
        work(100);
        CG_POP_CONTEXT();
    }
    CG_PUSH_CONTEXT(2);
    work(100);
    CACHEGRIND_START_INSTRUMENTATION;
    work(20);
    CG_POP_CONTEXT();
    work(10);
    CG_PUSH_CONTEXT(2);
    CACHEGRIND_STOP_INSTRUMENTATION;
    CG_POP_CONTEXT();
    CACHEGRIND_START_INSTRUMENTATION;
    work(10);
    CG_POP_CONTEXT();
    work(5);
    return 0;
}
