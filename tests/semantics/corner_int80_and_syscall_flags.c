#include "sem.h"
int main(void) {
    long r, flags, rcx;
    __asm__ volatile("stc\nstd\nmov $39, %%eax\nsyscall\npushf\npop %1\ncld\nmov %%rcx, %2" : "=&a"(r), "=r"(flags), "=r"(rcx) : : "rcx", "r11", "memory", "cc");
    extern char after[];
    printf("%d %lx\n", r == getpid(), flags & 0x401);
    __asm__ volatile("mov $39, %%eax\nsyscall\n.globl after\nafter: mov %%rcx, %0" : "=r"(rcx) : : "rax", "rcx", "r11", "memory");
    printf("%d\n", rcx == (long)after);
}
