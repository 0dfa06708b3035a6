/* Two phases that use the same function, each counted by itself. */
#include <stdio.h>

#include "cachegrind.h"

static int data[4096];

long sum(int step)
{
    long total = 0;
    for (int i = 0; i < 4096; i += step)
        total += data[i];
    return total;
}

int main(void)
{
    CG_PUSH_CONTEXT_NAMED("fill");
    for (int i = 0; i < 4096; i++)
        data[i] = i;
    long all = sum(1);
    CG_POP_CONTEXT();

    CG_PUSH_CONTEXT_NAMED("sample");
    long some = sum(16);
    CG_POP_CONTEXT();

    printf("%ld %ld\n", all, some);
    return 0;
}
