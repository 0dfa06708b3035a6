#include "sem.h"
int main(void) { printf("before\n"), fflush(stdout); abort(); }
