#include "sem.h"
int main(void) { __builtin_cpu_init(); volatile double d = 1.5; printf("%d %f\n", __builtin_cpu_supports("sse4.2") != 0, d * d); }
