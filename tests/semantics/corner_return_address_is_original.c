#include "sem.h"
__attribute__((noinline)) static int inside(void *a) { return (char *)a > (char *)inside - 4096 && (char *)a < (char *)inside + 4096; }
__attribute__((noinline)) static int f(void) { return inside(__builtin_return_address(0)); }
int main(void) { printf("%d\n", f()); void *pc; __asm__("call 1f\n1: pop %0" : "=r"(pc)); printf("%d\n", inside(pc)); __asm__("lea (%%rip), %0" : "=r"(pc)); printf("%d\n", inside(pc)); }
