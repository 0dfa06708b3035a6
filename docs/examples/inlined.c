// Two functions that the compiler puts into their callers.
#include <stdio.h>

static inline __attribute__((always_inline)) unsigned mix(unsigned x)
{
    x ^= x >> 7;
    return x * 31 + 5;
}

static inline __attribute__((always_inline)) unsigned rounds(unsigned x, int n)
{
    while (n-- > 0)
        x = mix(x);
    return x;
}

__attribute__((noinline)) static unsigned encode(unsigned x)
{
    return rounds(x, 40) ^ mix(x);
}

int main(void)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < 1000; i++)
        sum += encode(i);
    printf("%u\n", sum);
    return 0;
}
