// cc: -O1 -lm
// Where the last instruction of the x87 was, as several instructions write it down, through operands of every kind: nowhere (some
// processors forget it at any time), or where it is in the program. Flags and registers stay as they are.
#include "sem.h"
#include <stdint.h>
#include <fenv.h>
#include <cpuid.h>

static unsigned char area[4096] __attribute__((aligned(64)));
static double one = 1.5, sum;
static long known, flags_lost;

extern char first[], last[], alone[], alone_end[];
// Not inlined, so that the labels exist once. It ends with a division by 0 whose exception waits: some processors save addresses only then.
__attribute__((noinline)) static void load(void) {
    static const short unmasked = 0x37b;
    __asm__ volatile("alone: fldl %0\n\tfaddl %0\n\tfstpl %1\n\tfldcw %2\n\tfldl %0\n\tfldz\n\tfdivrp\nalone_end:"
                     : : "m"(one), "m"(sum), "m"(unmasked));
}

static void check(const char *what, uint64_t address, int size, char *from, char *to) {
    uint64_t mask = size == 8 ? ~0ul : 0xffffffff, a = (uint64_t)from & mask, b = (uint64_t)to & mask;
    if (address == 0) return;
    known++;
    if (address < a || address >= b) printf("%s: %lx is not in %lx..%lx\n", what, address, a, b);
}

static void in_handler(int sig UNUSED, siginfo_t *info UNUSED, void *context) {
    check("fpregs->rip", ((ucontext_t *)context)->uc_mcontext.fpregs->rip, 8, alone, alone_end);
}

static uint64_t word(int offset, int size) {
    uint64_t w = 0;
    memcpy(&w, area + offset, size);
    return w;
}

#define SAVE(what, offset, size, register, text)                                                                      \
    do {                                                                                                              \
        unsigned char carry;                                                                                          \
        uint64_t rcx, kept = 0x1234567887654321;                                                                      \
        memset(area, 0, sizeof area);                                                                                 \
        load();                                                                                                       \
        __asm__ volatile("mov %[at], %%" register "\n\tstc\n\t" text "\n\tsetc %[carry]\n\tfninit"                    \
                         : [carry] "=&r"(carry), "+m"(area)                                                           \
                         : [at] "r"(area)                                                                             \
                         : register, "cc", "memory");                                                                 \
        flags_lost += carry != 1;                                                                                     \
        check(what, word(offset, size), size, alone, alone_end);                                                      \
        memset(area, 0, sizeof area);                                                                                 \
        load();                                                                                                       \
        __asm__ volatile("mov %[kept], %%rcx\n\tmov %[at], %%rdx\n\tclc\n\t" "xchg %%rdx, %%" register "\n\t" text     \
                         "\n\txchg %%rdx, %%" register "\n\tsetc %[carry]\n\tmov %%rcx, %[rcx]\n\tfninit"              \
                         : [carry] "=&r"(carry), [rcx] "=&r"(rcx), "+m"(area)                                         \
                         : [at] "r"(area), [kept] "r"(kept)                                                           \
                         : "rcx", "rdx", register, "cc", "memory");                                                   \
        flags_lost += carry != 0 || rcx != kept;                                                                      \
        check(what, word(offset, size), size, alone, alone_end);                                                      \
    } while (0)

// What eax asks for is saved, and nothing else touched.
#define SAVE_ASKED(what, asked, name, size, register)                                                                 \
    do {                                                                                                              \
        uint64_t kept = 0x1122334455667788;                                                                           \
        memset(area, 0, sizeof area);                                                                                 \
        memcpy(area + 8, &kept, 8);                                                                                   \
        load();                                                                                                       \
        __asm__ volatile("mov %0, %%" register "\n\tmov %1, %%eax\n\txor %%edx, %%edx\n\t" name " (%%" register ")\n\tfninit" \
                         : : "r"(area), "i"(asked) : register, "rax", "rdx", "cc", "memory");                         \
        if (asked & 1 && area[512] & 1) check(what, word(8, size), size, alone, alone_end);                           \
        else if (word(8, 8) != kept && !(asked & 1)) printf("%s: changes what it was not asked for\n", what);         \
    } while (0)

int main(void) {
    on(SIGUSR1, in_handler, 0);
    unsigned a, b, c, d, extended = 0;
    __cpuid(1, a, b, c, d);
    int xsave = c >> 27 & 1;
    if (xsave) __cpuid_count(13, 1, extended, b, c, d);
    for (int i = 0; i < 200; i++) {
        SAVE("fnstenv (rax)", 12, 4, "rax", "fnstenv (%%rax)");
        SAVE("fnstenv (rcx)", 12, 4, "rcx", "fnstenv (%%rcx)");
        SAVE("fnstenv (rdi)", 12, 4, "rdi", "fnstenv (%%rdi)");
        SAVE("fnstenv (r10)", 12, 4, "r10", "fnstenv (%%r10)");
        SAVE("fnstenv (r11)", 12, 4, "r11", "fnstenv (%%r11)");
        SAVE("fnstenv (rip)", 12, 4, "rbx", "fnstenv area(%%rip)");
        SAVE("fnsave (rsi)", 12, 4, "rsi", "fnsave (%%rsi)");
        SAVE("fxsave (r8)", 8, 4, "r8", "fxsave (%%r8)");
        SAVE("fxsave64 (r9)", 8, 8, "r9", "fxsave64 (%%r9)");
        if (xsave) {
            SAVE_ASKED("xsave x87", 1, "xsave", 4, "rdi");
            SAVE_ASKED("xsave others", 6, "xsave", 4, "rdi");
            SAVE_ASKED("xsave64 all", 7, "xsave64", 8, "rcx");
            SAVE_ASKED("xsave64 x87", 1, "xsave64", 8, "r9");
            SAVE_ASKED("xsave64 others", 6, "xsave64", 8, "r11");
        }
        if (extended & 1) {
            SAVE_ASKED("xsaveopt all", 7, "xsaveopt", 4, "rsi");
            SAVE_ASKED("xsaveopt64 all", 7, "xsaveopt64", 8, "r8");
            SAVE_ASKED("xsaveopt64 others", 6, "xsaveopt64", 8, "r10");
        }
        if (extended & 2) {
            SAVE_ASKED("xsavec all", 7, "xsavec", 4, "rcx");
            SAVE_ASKED("xsavec64 all", 7, "xsavec64", 8, "rdi");
            SAVE_ASKED("xsavec64 others", 6, "xsavec64", 8, "rbx");
        }
        load();
        raise(SIGUSR1);
        __asm__ volatile("fninit");
        memset(area, 0, sizeof area);
        __asm__ volatile("first: fldl %1\n\tfmull %1\n\tfstpl %2\nlast: fnstenv %0\n\tfldenv %0\n\tfnstenv %0"
                         : "=m"(area) : "m"(one), "m"(sum));
        check("fldenv", word(12, 4), 4, first, last);
        // What C libraries do: no instruction of the unit but those for its control.
        __asm__ volatile("fninit");
        fenv_t e;
        feholdexcept(&e);
        feclearexcept(FE_ALL_EXCEPT);
        fesetenv(&e);
    }
    printf("flags lost %ld, seen %d, sum %g\n", flags_lost, known > 100, sum);
}
