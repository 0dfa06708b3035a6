/* Adds up a matrix twice: by rows, as it lies in memory, and by columns. */
#include <stdio.h>

#define N 512

static double matrix[N][N];

double by_rows(void)
{
    double sum = 0;
    for (int row = 0; row < N; row++)
        for (int column = 0; column < N; column++)
            sum += matrix[row][column];
    return sum;
}

double by_columns(void)
{
    double sum = 0;
    for (int column = 0; column < N; column++)
        for (int row = 0; row < N; row++)
            sum += matrix[row][column];
    return sum;
}

int main(void)
{
    for (int i = 0; i < N * N; i++)
        matrix[i / N][i % N] = i % 7;
    printf("%.0f %.0f\n", by_rows(), by_columns());
    return 0;
}
