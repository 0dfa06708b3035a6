// cc: -O2 -gdwarf-4
// Quicksort and binary search: branches that cannot be predicted, recursion, switches.
#include "cache.h"
enum { N = 600 };
static int v[N];
static void sort(int *a, int n) {
    while (n > 1) {
        int p = a[n / 2], i = 0, j = n - 1;
        while (i <= j) {
            while (a[i] < p) i++;
            while (a[j] > p) j--;
            if (i <= j) {
                int t = a[i];
                a[i++] = a[j];
                a[j--] = t;
            }
        }
        sort(a, j + 1);
        a += i;
        n -= i;
    }
}
static int classify(int x) {
    switch (x % 9) {
    case 0: return 3;
    case 1: return v[0];
    case 2: return x + 1;
    case 3: return x ^ 5;
    case 4: return v[x % N];
    case 5: return 9;
    case 6: return x * 3;
    default: return 0;
    }
}
int run(void) {
    u32 x = 1;
    for (int i = 0; i < N; i++) v[i] = (x = x * 1103515245 + 12345) >> 16;
    sort(v, N);
    int sum = 0, bad = 0;
    for (int i = 1; i < N; i++) bad |= v[i - 1] > v[i];
    for (int i = 0; i < N; i++) sum += classify(v[i]);
    return bad | (sum == 12345);
}
