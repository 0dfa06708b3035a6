#include "sem.h"
static jmp_buf b[100];
static void deep(int n) { if (n == 0) longjmp(b[37], 5); if (setjmp(b[n])) { printf("landed in %d\n", n); return; } deep(n - 1); printf("returned to %d\n", n); }
int main(void) { for (int i = 0; i < 3; i++) deep(40); }
