/* Recursive Fibonacci numbers: calls, returns and short blocks. */
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) static unsigned long fib(unsigned n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
int main(int argc, char **argv) { return printf("%lu\n", fib(argc > 1 ? atoi(argv[1]) : 40)) < 0; }
