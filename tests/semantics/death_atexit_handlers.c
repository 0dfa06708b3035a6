#include "sem.h"
static void a(void) { printf("a\n"); }
static void b(void) { printf("b\n"); }
__attribute__((destructor)) static void d(void) { printf("d\n"); }
int main(void) { atexit(a); atexit(b); exit(300); }
