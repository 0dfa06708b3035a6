// Adds two arrays up into a third one, three times.
#include <stdio.h>
#include <stdlib.h>

#define N 200000

int main(void)
{
    double *a = malloc(N * sizeof *a);
    double *b = malloc(N * sizeof *b);
    double *c = malloc(N * sizeof *c);
    for (int i = 0; i < N; i++)
        a[i] = b[i] = i;
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < N; i++)
            c[i] = 2 * a[i] + 3 * b[i] + 1;
    printf("%g\n", c[N - 1]);
    return 0;
}
