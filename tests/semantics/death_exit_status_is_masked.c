#include "sem.h"
int main(void) { printf("x\n"); fflush(stdout); _exit(0x1234); }
