// Handlers: nested, on a stack of their own, left by siglongjmp, with requests in them and below them.
#include "common.h"
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

static sigjmp_buf back;
static int asks, leaves;

APART void in_handler(void) { leaf(3); }

APART void second(int signal)
{
    in_handler();
    if (asks == 2) point();
    leaf(signal);
    if (leaves) siglongjmp(back, 1);
}

APART void first(int signal)
{
    leaf(signal);
    if (asks == 1) point();
    raise(SIGUSR2);
    in_handler();
    leaf(1);
}

APART void raises(int signal)
{
    leaf(2);
    raise(signal);
    if (asks == 0) point();
    leaf(3);
}

APART void returns_or_not(int n)
{
    if (sigsetjmp(back, 1) == 0) raises(n % 2 ? SIGUSR1 : SIGUSR2);
    else if (asks == 0) point();
    leaf(4);
}

static void once(int n)
{
    static char *stack;
    if (!stack) {
        stack = malloc(1 << 16);
        stack_t own = { .ss_sp = stack, .ss_size = 1 << 16 };
        struct sigaction one = { .sa_handler = first, .sa_flags = SA_ONSTACK };
        struct sigaction two = { .sa_handler = second };
        sigaltstack(&own, 0);
        sigaction(SIGUSR1, &one, 0);
        sigaction(SIGUSR2, &two, 0);
    }
    asks = n % 2 ? n % 3 : n % 4 == 0 ? 2 : 0;
    leaves = n % 3 == 2;
    returns_or_not(n);
}
