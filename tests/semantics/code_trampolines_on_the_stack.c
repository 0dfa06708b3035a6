// cc: -O0 -Wl,-z,execstack
#include "sem.h"
static int apply(int (*f)(int), int n) { int s = 0; for (int i = 0; i < n; i++) s += f(i); return s; }
int main(void) {
    int total = 0;
    for (int k = 0; k < 50; k++) { int add(int x) { return x * k; } total += apply(add, 10); }
    printf("%d\n", total);
}
