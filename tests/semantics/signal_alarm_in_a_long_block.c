// cc: -O1 -mno-red-zone
// A block of very many repeated instructions, whose translation is long, interrupted anywhere: the handler sees registers and
// flags as they are, whatever the translation holds in them meanwhile.
#include "sem.h"
enum { FLAGS = 0xcd5, NEGATED = 0x95 };
static volatile sig_atomic_t seen, wrong;
static char *first, *last;
static void tick(int s, siginfo_t *i, void *c) {
    (void)s, (void)i;
    greg_t *r = ((ucontext_t *)c)->uc_mcontext.gregs;
    if ((char *)r[REG_RIP] <= first || (char *)r[REG_RIP] >= last) return;
    seen++;
    for (int n = 8; n < 16; n++) wrong += r[REG_R8 + n - 8] != 0x1111 * n;
    wrong += r[REG_RDX] != 0x3333 || (r[REG_EFL] & FLAGS) != NEGATED;
}
static char from[64], to[64];
__attribute__((noinline)) static unsigned long block(void) {
    unsigned long flags;
    __asm__ volatile(
        ".irp n, 8, 9, 10, 11, 12, 13, 14, 15\n mov $0x1111 * \\n, %%r\\n\n .endr\n"
        "lea 1f(%%rip), %%rax\n mov %%rax, %[first]\n lea 2f(%%rip), %%rax\n mov %%rax, %[last]\n"
        "mov $0x3333, %%edx\n mov $0, %%ecx\n mov $1, %%ebx\n"
        "neg %%ebx\n jmp 1f\n" // Nothing in the block changes the flags.
        "1: .rept 98\n rep movsb\n mov 8(%%rsi), %%rax\n .endr\n"
        "2: pushf\n pop %%rax\n"
        : "=&a"(flags), [first] "=m"(first), [last] "=m"(last)
        : "S"(from), "D"(to)
        : "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc");
    return flags & FLAGS;
}
int main(void) {
    on(SIGALRM, tick, SA_RESTART);
    int bad = 0;
    block();
    every(500);
    for (long n = 0; seen < 200 && n < 50000000; n++) bad += block() != NEGATED;
    every(0);
    printf("%d %d %d\n", seen >= 200, wrong, bad);
}
