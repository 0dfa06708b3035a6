// cc: -O1 -lm
// Sorting, formatting, allocation and mathematics through libc.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
__attribute__((noinline)) static double series(int n) {
    double s = 0;
    for (int i = 1; i < n; i++) s += sin(i) / i + exp(-i);
    return s;
}
int main(void) {
    static int v[2000];
    static char text[64];
    long sum = 0;
    for (int i = 0; i < 2000; i++) v[i] = i * 7919 % 4001;
    qsort(v, 2000, sizeof *v, compare);
    for (int i = 0; i < 2000; i++) {
        sum += snprintf(text, sizeof text, "%d %g %s", v[i], v[i] / 3.0, "abc");
        char *copy = malloc(strlen(text) + 1);
        strcpy(copy, text);
        sum += strtol(copy, 0, 10);
        if (i % 3) free(copy);
    }
    printf("%ld %.9f\n", sum, series(500));
    return 0;
}
