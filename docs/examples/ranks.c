/* One process of a parallel program: the higher its rank, the more there is to do for it. The rank is what the launcher says. */
#include <stdio.h>
#include <stdlib.h>

unsigned relax(unsigned cells)
{
    unsigned sum = 1;
    for (unsigned i = 0; i < cells; i++)
        sum = sum * 31 + i;
    return sum;
}

unsigned setup(void)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < 100000; i++)
        sum ^= i * 2654435761u;
    return sum;
}

int main(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    unsigned n = rank ? atoi(rank) : 0;
    return (setup() ^ relax(100000 * (n + 1))) == 42;
}
