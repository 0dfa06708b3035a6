#include "sem.h"
int main(void) { printf("before\n"), fflush(stdout); *(volatile int *)8 = 1; printf("not reached\n"); }
