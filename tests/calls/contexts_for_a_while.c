/* Functions that are called from several places, recursion and callbacks, for long enough that calls are told at first and
   followed then. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 4000 };

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static long deep(int n, const int *v) { return n ? v[n % 1000] + deep(n - 1, v) : 0; }
static long once(const int *v) { return deep(30, v); }
static long twice(const int *v) { return once(v) + deep(5, v); }

int main(void)
{
    int *v = malloc(N * sizeof *v);
    long sum = 0;
    for (int k = 0; k < 120; k++) {
        for (int i = 0; i < N; i++)
            v[i] = (i * 7919 + k) % (N + 1);
        qsort(v, N, sizeof *v, compare);
        sum += once(v) + twice(v);
        char *p = malloc(k * 100 + 1);
        memset(p, k, k * 100);
        sum += p[0];
        free(p);
    }
    printf("%ld\n", sum);
}
