// Registers that translated code has taken for itself, r11 and sometimes r10, in all that instructions can do with them.
#include "sem.h"
#include <asm/prctl.h>

static unsigned long memory[64] __attribute__((aligned(64)));
unsigned long far_word = 0x1122334455667788;
static volatile int signals, odd;
static unsigned long last;

#define R "r11"
#define REG REG_R11
#define NAME(f) r11_##f
#include "taken.h"
#undef R
#undef REG
#undef NAME
#define R "r10"
#define REG REG_R10
#define NAME(f) r10_##f
#include "taken.h"

// Both in one instruction.
static void both(void) {
    unsigned long a, b, c, d;
    void *table[4] = {r10_called, r10_called, r10_called, r10_called};
    for (int i = 0; i < 64; i++) memory[i] = 0x0102030405060708 * i + i;
    __asm__ volatile("mov %4, %%r10\nmov $5, %%r11d\nmov (%%r10,%%r11,8), %0\nlea 9(%%r11,%%r10,2), %1\nsub %4, %1\nsub %4, %1\nxchg %%r10, %%r11\n"
                     "mov 8(%%r11,%%r10,8), %%r10\nmov %%r10, 16(%%r11)\nadd %%r10, %%r11\nsub %4, %%r11\nmov %%r11, %2\nmov %4, %%r11\nmov (%%r11), %%rax\n"
                     "cmpxchg %%r10, (%%r11)\nxadd %%r10, (%%r11)\nmov %%r10, %3"
                     : "=&r"(a), "=&r"(b), "=&r"(c), "=&r"(d) : "r"(memory) : "rax", "r10", "r11", "memory", "cc");
    printf("%lx %lx %lx %lx %lx %lx\n", a, b, c, d, memory[0], memory[2]);
    __asm__ volatile("sub $128, %%rsp\nmov %2, %%r10\nmov $2, %%r11d\ncall *8(%%r10,%%r11,8)\nmov %%rax, %0\nlea 1f(%%rip), %%rax\nmov %%rax, (%2)\n"
                     "mov %2, %%r11\nmov $-3, %%r10\njmp *24(%%r11,%%r10,8)\nud2\n1: push %%r10\npush %%r11\npop %%r10\npop %%r11\nsub %2, %%r10\nadd %%r10, %%r11\n"
                     "add $128, %%rsp\nmov %%r11, %1" : "=&r"(a), "=&r"(b) : "r"(table) : "rax", "r10", "r11", "memory", "cc");
    printf("%lx %lx\n", a - (unsigned long)table, b);
    static unsigned long area[4] = {11, 22, 33, 44};
    CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, area) == 0);
    __asm__ volatile("mov $8, %%r10d\nmov $1, %%r11d\nmov %%gs:(%%r10,%%r11,8), %%r11\nmov %%r11, %%gs:8(%%r10)\nmov %%gs:16, %%r10\nlea 1f(%%rip), %%rax\nmov %%rax, %%gs:0\n"
                     "mov $8, %%r10d\nmov $-1, %%r11\nmov %%gs:(%%r10), %0\njmp *%%gs:(%%r10,%%r11,8)\nud2\n1: mov %%r10, %1" : "=&r"(a), "=&r"(b)
                     : : "rax", "r10", "r11", "memory");
    CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, 0) == 0);
    printf("%lx %lx %lx\n", a, b, area[2]);
}

int main(void) {
    r11_all();
    r10_all();
    both();
}
