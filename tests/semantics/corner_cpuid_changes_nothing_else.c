// CPUID and XGETBV change four and two registers, and nothing else: no flag, no other register, whatever they are asked, and
// whatever signal comes meanwhile. The same question has the same answer.
#include "sem.h"
#include <signal.h>
#include <sys/time.h>

static volatile unsigned handled;
static void on_alarm(int sig) {
    (void)sig;
    handled++;
}

// rflags, then rax, rbx, rcx, rdx, nine others, and which instruction it is.
struct state {
    unsigned long flags, four[4], others[10], xgetbv;
};

static struct state asked(unsigned long flags, unsigned long leaf, unsigned long subleaf, int xgetbv) {
    struct state s = {flags, {leaf, 0xb0b0b0b0b0b0b0b0, subleaf, 0xd0d0d0d0d0d0d0d0}, {0}, xgetbv};
    __asm__ volatile("sub $128, %%rsp\npush %%rbp\n"
                     "mov $0x1111111111111111, %%rsi\nmov $0x2222222222222222, %%rbp\nmov $0x3333333333333333, %%r8\nmov $0x4444444444444444, %%r9\n"
                     "mov $0x5555555555555555, %%r10\nmov $0x6666666666666666, %%r11\nmov $0x7777777777777777, %%r12\nmov $0x8888888888888888, %%r13\n"
                     "mov $-1, %%r14\nmov 8(%%rdi), %%rax\nmov 16(%%rdi), %%rbx\nmov 24(%%rdi), %%rcx\nmov 32(%%rdi), %%rdx\n"
                     "cmpq $0, 120(%%rdi)\npush (%%rdi)\nje 1f\npopf\nxgetbv\njmp 2f\n1: popf\ncpuid\n2:\n"
                     "pushf\npop (%%rdi)\nmov %%rax, 8(%%rdi)\nmov %%rbx, 16(%%rdi)\nmov %%rcx, 24(%%rdi)\nmov %%rdx, 32(%%rdi)\n"
                     "mov %%rsi, 40(%%rdi)\nmov %%rbp, 48(%%rdi)\nmov %%r8, 56(%%rdi)\nmov %%r9, 64(%%rdi)\nmov %%r10, 72(%%rdi)\n"
                     "mov %%r11, 80(%%rdi)\nmov %%r12, 88(%%rdi)\nmov %%r13, 96(%%rdi)\nmov %%r14, 104(%%rdi)\npop %%rbp\nadd $128, %%rsp"
                     : : "D"(&s)
                     : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "memory", "cc");
    return s;
}

static int wrong;
static void check(unsigned long flags, const struct state *s, const char *what, unsigned long leaf, unsigned long subleaf) {
    static const unsigned long kept[] = {0x1111111111111111, 0x2222222222222222, 0x3333333333333333, 0x4444444444444444, 0x5555555555555555,
                                         0x6666666666666666, 0x7777777777777777, 0x8888888888888888, -1UL};
    int bad = (s->flags ^ flags) & 0x8d5 || memcmp(s->others, kept, sizeof kept);
    for (int i = 0; i < 4; i++) bad |= s->four[i] >> 32 && !(what[0] == 'x' && (i == 1 || i == 2));
    if (bad && wrong++ < 10) printf("%s %lx %lx: flags %lx, %lx\n", what, leaf, subleaf, flags, s->flags);
}

int main(void) {
    static const unsigned long leaves[] = {0, 1, 2, 4, 5, 7, 0xb, 0xd, 0x14, 0x40000000, 0x80000000, 0x80000001, 0x80000008, 0x80000009, 0xffffffff00000004};
    static const unsigned long subleaves[] = {0, 1, 3, 5, 6, 77, 0xffffffff00000001};
    static const unsigned long flags[] = {0x202, 0x202 | 1, 0x202 | 0x40, 0x202 | 0x800, 0x202 | 0x8d5, 0x202 | 0x94, 0x202 | 0x841};
    signal(SIGALRM, on_alarm);
    struct itimerval often = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &often, 0);
    int differs = 0;
    for (int round = 0; round < 2; round++)
        for (unsigned l = 0; l < sizeof leaves / sizeof *leaves; l++)
            for (unsigned n = 0; n < sizeof subleaves / sizeof *subleaves; n++) {
                struct state first = {0};
                for (unsigned f = 0; f < sizeof flags / sizeof *flags; f++) {
                    struct state s = asked(flags[f], leaves[l], subleaves[n], 0);
                    check(flags[f], &s, "cpuid", leaves[l], subleaves[n]);
                    if (!f) first = s;
                    // (Leaves 1 and 0xb tell on which processor the question is answered.)
                    int by_processor = (unsigned)leaves[l] == 1 || (unsigned)leaves[l] == 0xb || leaves[l] > 0x14;
                    differs += !by_processor && memcmp(s.four, first.four, sizeof s.four) != 0;
                }
            }
    unsigned a = 1, b, c = 0, d;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    for (unsigned f = 0; c >> 27 & 1 && f < 7 * 40; f++) {
        struct state s = asked(flags[f % 7], -1UL, 0, 1);
        check(flags[f % 7], &s, "xgetbv", 0, 0);
        if ((s.four[0] & 3) != 3 || s.four[1] != 0xb0b0b0b0b0b0b0b0 || s.four[2]) wrong++;
    }
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, 0);
    printf("%d wrong, %d differ, handled %d\n", wrong, differs, handled != 0);
    return 0;
}
