// Registers that translated code takes for itself, r11 and sometimes r8, r9 and r10, in all that instructions can do with them.
#include "sem.h"
#include <asm/prctl.h>

static unsigned long memory[64] __attribute__((aligned(64)));
unsigned long far_word = 0x1122334455667788;
static volatile int signals, odd, counting;
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
#undef R
#undef REG
#undef NAME
#define R "r9"
#define REG REG_R9
#define NAME(f) r9_##f
#include "taken.h"
#undef R
#undef REG
#undef NAME
#define R "r8"
#define REG REG_R8
#define NAME(f) r8_##f
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

// All of them in one instruction, and in pairs; a handler sees all, and changes all.
static void set_all(int s UNUSED, siginfo_t *i UNUSED, void *v) {
    greg_t *g = ((ucontext_t *)v)->uc_mcontext.gregs;
    printf("%llx %llx %llx %llx\n", g[REG_R8], g[REG_R9], g[REG_R10] - (greg_t)memory, g[REG_R11]);
    g[REG_R8] = 3, g[REG_R9] = 5, g[REG_R10] = (greg_t)memory, g[REG_R11] = 2;
}

static void all(void) {
    unsigned long a, b, c, d;
    for (int i = 0; i < 64; i++) memory[i] = 0x0102030405060708 * i + i;
    __asm__ volatile("mov %4, %%r10\nmov $5, %%r11d\nmov $0x123456789abcdef, %%rdx\nmulx (%%r10,%%r11,8), %%r8, %%r9\nmov %%r8, %0\nmov %%r9, %1\n"
                     "mov $0x0b04, %%r8d\nbextr %%r8, 8(%%r10,%%r11,8), %%r9\nmov %%r9, %2\nmov %4, %%r9\nmov $6, %%r8d\nandn (%%r9,%%r8,8), %%r11, %%r10\nmov %%r10, %3\n"
                     "mov %4, %%r8\nmov $7, %%r9d\nlea (%%r8,%%r9,8), %%r11\nmov %%r9, (%%r11)\nxchg %%r9, 8(%%r8,%%r9,8)\nadd %%r9b, 1(%%r11)\nmov %4, %%r9\n"
                     "mov $9, %%r11d\nshld $3, %%r11, (%%r9,%%r11,8)\nmov (%%r9,%%r11,8), %%r11w\nmov %%r11, 80(%%r9)"
                     : "=&r"(a), "=&r"(b), "=&r"(c), "=&r"(d) : "r"(memory) : "rdx", "r8", "r9", "r10", "r11", "memory", "cc");
    printf("%lx %lx %lx %lx %lx %lx %lx %lx\n", a, b, c, d, memory[7], memory[8], memory[9], memory[10]);
    on(SIGSEGV, set_all, 0);
    __asm__ volatile("mov %2, %%r10\nmov $0x11, %%r8d\nmov $0x1000000000000000, %%r9\nmov $0x22, %%r11d\nadcx (%%r10,%%r11,8), %%r8\nmulx (%%r10,%%r9,1), %%r8, %%r11\n"
                     "lea (%%r8,%%r9,2), %0\nsub %2, %%r10\nlea (%%r10,%%r11,4), %1"
                     : "=&r"(a), "=&r"(b) : "r"(memory) : "r8", "r9", "r10", "r11", "memory", "cc");
    printf("%lx %lx\n", a, b);
    // Six arguments of a system call, all of which survive it.
    long made;
    register unsigned long r8 __asm__("r8") = -1ul, r9 __asm__("r9") = 4096, r10 __asm__("r10") = MAP_PRIVATE | MAP_ANONYMOUS;
    __asm__ volatile("syscall" : "=a"(made), "+r"(r8), "+r"(r9), "+r"(r10) : "a"(SYS_mmap), "D"(0), "S"(8192), "d"(PROT_READ | PROT_WRITE) : "rcx", "r11", "memory");
    printf("%d %lx %lx %lx\n", made > 0, r8, r9, r10);
    CHECK(munmap((void *)made, 8192) == 0);
}

int main(void) {
    r11_all();
    r10_all();
    r9_all();
    r8_all();
    both();
    all();
}
