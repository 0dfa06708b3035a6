/* PAIRS pushes and pops of contexts, then the recursive fib of ARGUMENT, in a context of its own if PAIRS is not 0. */
#include <stdio.h>
#include <stdlib.h>
#include "cachegrind.h"

static __attribute__((noinline)) unsigned long fib(unsigned n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

int main(int argc, char **argv)
{
    long pairs = argc > 1 ? atol(argv[1]) : 0;
    for (long i = 0; i < pairs; i++) {
        CG_PUSH_CONTEXT(1 + i % 4);
        CG_POP_CONTEXT();
    }
    if (pairs)
        CG_PUSH_CONTEXT(9);
    printf("%lu\n", fib(argc > 2 ? (unsigned)atoi(argv[2]) : 1));
    return 0;
}
