// cc: -O1
// Walks over arrays of its own in every way that has a closed form, a line each, with nothing but the array's accesses in between.
// `objects.rs` has the same loops, by the name that stands behind each line.
#include <stdio.h>

#define PAGE __attribute__((aligned(4096)))

static volatile double a[10000] PAGE, b[10000] PAGE, c[10000] PAGE;
static volatile double rows[200 * 200] PAGE, columns[200 * 200] PAGE;
static volatile short back[100000] PAGE;
static volatile int here[16] PAGE, there[24 * 1024] PAGE;
static volatile double volume[60 * 50 * 40] PAGE;
static volatile struct { long key, value, next; } table[8000] PAGE;
static volatile double matrix[500 * 130] PAGE;
static volatile char all[1 << 20] PAGE;

int main(void) {
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 10000; i++)
            c[i] = a[i] + b[i]; // triad
    for (int i = 0; i < 200; i++)
        for (int j = 0; j < 200; j++)
            columns[j * 200 + i] = rows[i * 200 + j]; // transposition
    for (int i = 99999; i >= 0; i--)
        back[i]; // back
    for (int i = 0; i < 500; i++) {
        here[3]; // here
        for (int j = 0; j < 24; j++)
            there[j * 1024 + 3]; // there
    }
    for (int i = 0; i < 40; i++)
        for (int j = 0; j < 50; j++)
            for (int k = 0; k < 60; k++)
                volume[(k * 50 + j) * 40 + i]; // volume
    for (int i = 0; i < 8000; i++)
        table[i].value; // table
    for (int n = 0; n < 2; n++)
        for (int i = 0; i < 500; i++)
            for (int j = 0; j < 100; j++)
                matrix[i * 130 + j] = 1; // matrix
    unsigned long state = 1;
    for (int i = 0; i < 50000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        all[state >> 44]; // all
    }
    printf("done\n");
    return 0;
}
