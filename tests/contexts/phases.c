// Three phases that share three kernels. With ANNOTATED each has a context; with UNKNOWN the requests are there, but no
// profiler knows their numbers; with ONLY=n nothing but phase n runs.
#include "cachegrind.h"
#ifdef UNKNOWN
#undef CG_PUSH_CONTEXT
#undef CG_POP_CONTEXT
#define CG_PUSH_CONTEXT(n) VALGRIND_DO_CLIENT_REQUEST_STMT(0x47530000, n, 0, 0, 0, 0)
#define CG_POP_CONTEXT() VALGRIND_DO_CLIENT_REQUEST_STMT(0x47530001, 0, 0, 0, 0, 0)
#define ANNOTATED
#endif
#ifndef ANNOTATED
#undef CG_PUSH_CONTEXT
#undef CG_POP_CONTEXT
#define CG_PUSH_CONTEXT(n) (void)0
#define CG_POP_CONTEXT() (void)0
#endif
#ifndef ONLY
#define ONLY 0
#endif
#define APART __attribute__((noinline))
static volatile unsigned char sink[64];
unsigned data[4096];
APART static unsigned sum(unsigned n) {
    unsigned s = 0;
    for (unsigned i = 0; i < n; i++) s += data[i & 4095];
    return s;
}
APART static void fill(unsigned n, unsigned x) {
    for (unsigned i = 0; i < n; i++) data[i & 4095] = x = x * 1664525 + 1013904223;
}
APART static unsigned count_odd(unsigned n) {
    unsigned odd = 0;
    for (unsigned i = 0; i < n; i++) odd += data[i & 4095] & 1;
    return odd;
}
APART static void phase1(void) {
    fill(5000, 1);
    sink[0] = sum(100);
    sink[1] = count_odd(10);
}
APART static void phase2(void) {
    sink[2] = sum(4000);
    fill(10, 3);
    __builtin_memset((void *)sink, 7, sizeof(sink));
}
APART static void phase3(void) {
    sink[3] = count_odd(3000);
    sink[4] = sum(3000);
    sink[5] = count_odd(30);
}
int main(void) {
    for (int i = 0; i < 3; i++) {
        if (!ONLY || ONLY == 1) {
            CG_PUSH_CONTEXT(1);
            phase1();
            CG_POP_CONTEXT();
        }
        if (!ONLY || ONLY == 2) {
            CG_PUSH_CONTEXT(2);
            phase2();
            if (!ONLY || ONLY == 3) {
                CG_PUSH_CONTEXT(3);
                phase3();
                CG_POP_CONTEXT();
            }
            phase2();
            CG_POP_CONTEXT();
        } else if (ONLY == 3) {
            phase3();
        }
    }
    return 0;
}
