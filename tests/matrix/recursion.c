// Recursion, direct and through others, with requests on all levels of it.
#include "common.h"

APART int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
APART int odd(int n);
APART int even(int n) { int r = n == 0 ? 1 : odd(n - 1); sink++; return r; }
APART int odd(int n) { int r = n == 0 ? 0 : even(n - 1); sink++; return r; }

APART long down(int n, int at)
{
    if (n == at) point();
    if (n == 0) return 1;
    long r = down(n - 1, at);
    leaf(n);
    return r + 1;
}

APART long through(int n, int at);
APART long and_back(int n, int at) { long r = through(n - 1, at); leaf(1); return r; }
APART long through(int n, int at)
{
    if (n == at) point();
    return n == 0 ? 0 : and_back(n, at) + 1;
}

static void once(int n)
{
    sink += fib(n) + even(n);
    sink += n % 2 ? down(5, n / 2) : through(4, n % 3);
    sink += down(3, -1) + through(2, -1) + fib(4);
}
