#include "sem.h"
int main(void) { unsigned long a = __builtin_ia32_rdtsc(); work(1000); unsigned long b = __builtin_ia32_rdtsc(); unsigned aux; printf("%d %d\n", b > a, __builtin_ia32_rdtscp(&aux) > b); }
