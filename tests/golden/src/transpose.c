// Transposes a matrix, so many rows at a time, and adds up a list.
#include <stdio.h>
#include <stdlib.h>

#define N 600
#ifndef ROWS
#define ROWS 1
#endif

static double sums[N];

struct node {
    struct node *next;
    long value;
};

static void transpose(double *to, const double *from)
{
    for (int first = 0; first < N; first += ROWS)
        for (int column = 0; column < N; column++)
            for (int row = first; row < first + ROWS; row++)
                to[column * N + row] = from[row * N + column];
}

int main(void)
{
    double *matrix = calloc(N * N, sizeof *matrix);
    double *turned = malloc(N * N * sizeof *turned);
    transpose(turned, matrix);
    for (int row = 0; row < N; row++)
        sums[row] += turned[row * N];
    struct node *list = NULL;
    for (int i = 0; i < 10000; i++) {
        struct node *node = malloc(sizeof *node);
        *node = (struct node){list, i};
        list = node;
    }
    long sum = 0;
    for (const struct node *node = list; node; node = node->next)
        sum += node->value;
    printf("%g %ld\n", sums[0], sum);
    return 0;
}
