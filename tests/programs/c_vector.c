// cc: -O3 -mavx2 -mfma
// cpu: avx2 fma
// Vectorised matrix product, stencil and reductions at -O3.
#include "rt.h"
static float a[48][48], b[48][48], c[48][48];
static double g[2][40][40];
static int v[1000];
__attribute__((noinline)) static void product(void) {
    for (int i = 0; i < 48; i++)
        for (int k = 0; k < 48; k++)
            for (int j = 0; j < 48; j++) c[i][j] += a[i][k] * b[k][j];
}
__attribute__((noinline)) static void stencil(int from) {
    for (int i = 1; i < 39; i++)
        for (int j = 1; j < 39; j++)
            g[!from][i][j] = 0.25 * (g[from][i - 1][j] + g[from][i + 1][j] + g[from][i][j - 1] + g[from][i][j + 1]);
}
__attribute__((noinline)) static i64 count(int bound) {
    i64 n = 0;
    for (int i = 0; i < 1000; i++) n += v[i] > bound ? v[i] : -1;
    return n;
}
int run(i64 *stack) {
    for (int i = 0; i < 48; i++)
        for (int j = 0; j < 48; j++) a[i][j] = i * 3 - j, b[i][j] = (i ^ j) * 0.5f;
    for (int i = 0; i < 40; i++)
        for (int j = 0; j < 40; j++) g[0][i][j] = i * j % 7;
    for (int i = 0; i < 1000; i++) v[i] = (i * 7919) % 1009;
    product();
    for (int t = 0; t < 10; t++) stencil(t & 1);
    print("product", (u64)(i64)(c[7][9] * 1000 + c[40][31]));
    print("stencil", (u64)(i64)(g[0][20][17] * 1e9));
    print("count", count(500));
    return 0;
}
