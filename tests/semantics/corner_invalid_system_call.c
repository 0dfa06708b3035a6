#include "sem.h"
int main(void) { printf("%ld %d\n", syscall(9999), errno == ENOSYS); printf("%ld %d\n", syscall(-1), errno == ENOSYS); printf("%ld %d\n", syscall(SYS_read, 0, -1L, 5), errno); }
