// cc: -O1 -gdwarf-4
// A matrix product, row by column and row by row.
#include "cache.h"
enum { N = 20 };
static double a[N][N], b[N][N], c[N][N];
static void by_column(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double s = 0;
            for (int k = 0; k < N; k++) s += a[i][k] * b[k][j];
            c[i][j] = s;
        }
}
static void by_row(void) {
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++) {
            double f = a[i][k];
            for (int j = 0; j < N; j++) c[i][j] += f * b[k][j];
        }
}
int run(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) a[i][j] = i + j, b[i][j] = i - j;
    by_column();
    by_row();
    return c[3][4] == 0;
}
