/* A five-point stencil, vectorised by the compiler (-O3 -mavx2 -mfma): long blocks in tight loops. */
#include <stdio.h>
#include <stdlib.h>
enum { N = 400 };
static double a[2][N][N];
int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 9000;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) a[0][i][j] = (i * 31 + j * 17) % 101;
    for (int t = 0; t < rounds; t++) {
        double(*from)[N] = a[t & 1], (*to)[N] = a[~t & 1];
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++)
                to[i][j] = 0.2 * (from[i][j] + from[i - 1][j] + from[i + 1][j] + from[i][j - 1] + from[i][j + 1]);
    }
    return printf("%.9f\n", a[rounds & 1][N / 2][N / 3]) < 0;
}
