// Calls back from a library, through pointers, and calls that are jumps, with requests in what is called back.
// cc: -foptimize-sibling-calls
#include "common.h"
#include <stdlib.h>

static int asks;

APART int compare(const void *a, const void *b)
{
    if (asks == 1) {
        asks = 0;
        point();
    }
    leaf(1);
    return *(const int *)a - *(const int *)b;
}

APART void last(long n) { if (asks == 2) { asks = 0; point(); } leaf(n); }
APART void goes_on(long n) { sink++; last(n + 1); }
APART void jumps_on(long n) { sink += 2; goes_on(n + 1); }

static void (*const table[])(long) = { leaf, goes_on, jumps_on, last };
APART void through_table(int n) { for (int i = 0; i < 4; i++) table[(i + n) % 4](i); sink++; }

static void once(int n)
{
    int numbers[20];
    for (int i = 0; i < 20; i++) numbers[i] = i * 37 % 23;
    asks = n % 3;
    qsort(numbers, 20, sizeof *numbers, compare);
    int key = 5;
    sink += bsearch(&key, numbers, 20, sizeof *numbers, compare) != 0;
    through_table(n);
    if (asks == 0 && n % 3 == 0) point();
    char *p = malloc(40 + n);
    memset(p, 1, 40);
    sink += p[n];
    free(p);
    jumps_on(n);
}
