// All that instructions can do with r11, which translated code has taken for itself.
#include "sem.h"
#include <asm/prctl.h>

static unsigned long memory[64] __attribute__((aligned(64)));
unsigned long far_word = 0x1122334455667788;
static volatile int signals, odd;
static unsigned long last;

// The registers of an interrupted loop that counts in r11.
static void tick(int s UNUSED, siginfo_t *i UNUSED, void *v) {
    unsigned long at = ((ucontext_t *)v)->uc_mcontext.gregs[REG_R11];
    signals++;
    odd += at < last || at > 300000000;
    last = at;
}

// A handler that changes it.
static void fault(int s UNUSED, siginfo_t *i, void *v) {
    greg_t *g = ((ucontext_t *)v)->uc_mcontext.gregs;
    printf("fault at %p, r11 %llx\n", i->si_addr, g[REG_R11]);
    g[REG_R11] = (greg_t)memory;
}

unsigned long called(void) {
    unsigned long r;
    __asm__ volatile("mov %%r11, %0" : "=r"(r));
    return r + 1;
}

static void operands(void) {
    unsigned long a, b, c, d;
    for (int i = 0; i < 64; i++) memory[i] = 0x0102030405060708 * i + i;
    __asm__ volatile("mov $0x8877665544332211, %%r11\nmov $0xab, %%r11b\nmov $0xcdef, %%r11w\nmov %%r11, %0\nmov $7, %%r11d\nmov %%r11, %1\n"
                     "xchg %%r11, %1\nxchg %%r11b, %%al\nbswap %%r11\nmov %%r11, %2\nimul $3, %%r11, %%r11\nmov %%r11, %3"
                     : "=&r"(a), "=&r"(b), "=&r"(c), "=&r"(d) : : "rax", "r11");
    printf("%lx %lx %lx %lx\n", a, b, c & ~0xfful << 56, d & 0);
    __asm__ volatile("mov %4, %%r11\nmov 8(%%r11), %0\nmov $5, %%r11d\nmov (%4,%%r11,8), %1\nlea 3(%%r11,%%r11,4), %2\n"
                     "lea 8(,%%r11,8), %%r11\nadd %4, %%r11\npush (%%r11)\npop 8(%%r11)\nmov 8(%%r11), %3\n"
                     : "=&r"(a), "=&r"(b), "=&r"(c), "=&r"(d) : "r"(memory) : "r11", "memory", "cc");
    printf("%lx %lx %lx %lx\n", a, b, c, d);
    // Atomic ones, with rax, rbx, rcx and rdx in use.
    __asm__ volatile("mov %2, %%r11\nmov (%%r11), %%rax\nmov 8(%%r11), %%rdx\nmov $1, %%ebx\nmov $2, %%ecx\nlock cmpxchg16b (%%r11)\nsetz %%r11b\n"
                     "movzx %%r11b, %%r11\nmov %%r11, %0\nlock xadd %%r11, 16(%2)\nmov %%r11, %1"
                     : "=&r"(a), "=&r"(b) : "r"(memory) : "rax", "rbx", "rcx", "rdx", "r11", "memory", "cc");
    printf("%lx %lx %lx %lx %lx\n", a, b, memory[0], memory[1], memory[2]);
    // Bit strings, multiplications, divisions, conditions.
    __asm__ volatile("mov %3, %%r11\nbtsq $5, 24(%%r11)\nmov $-70, %%r11\nbts %%r11, 64(%3)\nmov $1000, %%r11d\nbtc %%r11d, 64(%3)\nmov $-3, %%r11\n"
                     "bts %%r11w, 64(%3)\nmov $100, %%eax\nmov $7, %%r11d\nxor %%edx, %%edx\ndiv %%r11\nmov %%rdx, %%r11\nmov %%r11, %0\n"
                     "mov $-1, %%rax\nmul %%r11\nmov %%rdx, %1\ncmp $1, %%r11\ncmove %%rax, %%r11\nmov %%r11, %2"
                     : "=&r"(a), "=&r"(b), "=&r"(c) : "r"(memory) : "rax", "rdx", "r11", "memory", "cc");
    d = 0;
    for (int i = 0; i < 64; i++) d = d * 31 + memory[i];
    printf("%lx %lx %lx %lx\n", a, b, c, d);
    // The stack.
    __asm__ volatile("mov %%rsp, %%r11\nsub $256, %%rsp\nand $-64, %%rsp\npush %%r11\npush $99\npop %%r11\nmov %%r11, %0\npop %%r11\n"
                     "xchg %%r11, %%rsp\nxchg %%r11, %%rsp\nmov %%r11, %%rsp\nlea -8(%%rsp), %%r11\nsub %%rsp, %%r11\nmov %%r11, %1"
                     : "=&r"(a), "=&r"(b) : : "r11", "memory", "cc");
    printf("%lx %lx\n", a, b);
    // Vector registers, and addresses relative to rip and eip.
    __asm__ volatile("mov $0x1234567, %%r11\nmovq %%r11, %%xmm0\npinsrw $3, %%r11d, %%xmm0\nmovq %%xmm0, %%r11\nmov %%r11, %0\n"
                     "mov far_word(%%rip), %%r11\nmov %%r11, %1\nlea far_word(%%rip), %%r11\nmovups (%%r11), %%xmm0\ncvtsi2sd %%r11d, %%xmm1\n"
                     "mov $-5, %%r11\ncvtsi2sd %%r11, %%xmm1\ncvttsd2si %%xmm1, %%r11\nmov %%r11, %2\nrol $9, %%r11\nmov $3, %%ecx\nshl %%cl, %%r11\nmov %%r11, %3"
                     : "=&r"(a), "=&r"(b), "=&r"(c), "=&r"(d) : : "rcx", "r11", "xmm0", "xmm1", "memory", "cc");
    printf("%lx %lx %lx %lx\n", a, b, c, d);
}

static void transfers(void) {
    unsigned long a, b, c, d;
    void *table[4] = {called, called, called, called};
    __asm__ volatile("sub $128, %%rsp\nlea called(%%rip), %%r11\ncall *%%r11\nlea called(%%rip), %%r11\nsub %%r11, %%rax\nmov %%rax, %0\n"
                     "mov %4, %%r11\ncall *8(%%r11)\nmov %4, %%r11\nsub %%r11, %%rax\nmov %%rax, %1\nmov $3, %%r11d\nmov %4, %%rcx\ncall *(%%rcx,%%r11,8)\nmov %%rax, %2\n"
                     "lea 1f(%%rip), %%r11\njmp *%%r11\nud2\n1: lea 2f(%%rip), %%r11\nmov %%r11, (%4)\nlea -8(%4), %%r11\njmp *8(%%r11)\nud2\n"
                     "2: lea 3f(%%rip), %%r11\npush %%r11\nret\n3: sub %4, %%r11\nadd $128, %%rsp\nmov %%r11, %3"
                     : "=&r"(a), "=&r"(b), "=&r"(c), "=&r"(d) : "r"(table) : "rax", "rcx", "r11", "memory", "cc");
    printf("%lx %lx %lx %d\n", a, b, c, d != 0);
}

static void segments(void) {
    static unsigned long area[4] = {11, 22, 33, 44};
    unsigned long a, b, c;
    CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, area) == 0);
    __asm__ volatile("mov $8, %%r11d\nmov %%gs:8(%%r11), %0\nmov %%r11, %%gs:(%%r11)\nmov %%gs:8, %%r11\nmov %%r11, %1\nxor %%r11d, %%r11d\nmov %%fs:(%%r11), %%r11\n"
                     "mov %%fs:0, %2\nsub %%r11, %2" : "=&r"(a), "=&r"(b), "=&r"(c) : : "r11", "memory", "cc");
    printf("%lx %lx %lx\n", a, b, c);
    __asm__ volatile("lea 1f(%%rip), %%rax\nmov %%rax, %0\nmov $16, %%r11d\njmp *%%gs:(%%r11)\nud2\n1:" : "=m"(area[2]) : : "rax", "r11", "memory");
    CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, 0) == 0);
}

static void calls(void) {
    unsigned long a, b;
    // A system call leaves the flags in it.
    __asm__ volatile("mov $39, %%eax\nmov $77, %%r11d\ncmp %%r11, %%r11\nsyscall\nmov %%r11, %0\nstc\nmov $39, %%eax\nsyscall\nmov %%r11, %1"
                     : "=&r"(a), "=&r"(b) : : "rax", "rcx", "r11", "memory", "cc");
    printf("%lx %lx\n", a & 0xcd5, b & 0x401);
    // It survives what stops a thread: a child, and an instruction that is emulated.
    unsigned eax = 0, ebx, ecx = 0, edx;
    __asm__ volatile("mov $0x5678, %%r11d\ncpuid\nmov %%r11, %4" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx), "=m"(a) : : "r11");
    printf("%lx\n", a);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        __asm__ volatile("mov $0x99, %%r11d\nint3\nmov %%r11, %0" : "=m"(b) : : "r11", "memory");
        printf("%lx\n", b);
        fflush(stdout);
        _exit(3);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    show_status(status);
}

static void areas(void) {
    static char area[4096] __attribute__((aligned(64)));
    unsigned long a;
    __asm__ volatile("mov %1, %%r11\nfxsave (%%r11)\nfxrstor (%%r11)\nmov $3, %%eax\nxor %%edx, %%edx\nxsave 1024(%%r11)\nmov $3, %%eax\nxor %%edx, %%edx\n"
                     "mov $1024, %%r11d\nxrstor (%1,%%r11,1)\nmov %%r11, %0" : "=&r"(a) : "r"(area) : "rax", "rdx", "r11", "memory");
    printf("%lx\n", a);
    // Repeated ones leave it alone.
    __asm__ volatile("mov $0x4321, %%r11d\nmov %1, %%rdi\nmov $100, %%ecx\nrep stosb\nmov %1, %%rdi\nmov $200, %%ecx\nrepe scasb\nmov %%r11, %0"
                     : "=&r"(a) : "r"(area) : "rcx", "rdi", "r11", "memory", "cc");
    printf("%lx\n", a);
}

int main(void) {
    operands();
    transfers();
    segments();
    on(SIGTRAP, tick, 0);
    calls();
    areas();
    on(SIGSEGV, fault, 0);
    unsigned long a;
    __asm__ volatile("mov $0x10, %%r11d\nmovq 24(%%r11), %%rax\nmov %%rax, %0" : "=&r"(a) : : "rax", "r11", "memory");
    printf("%d\n", a == memory[3]);
    on(SIGALRM, tick, 0);
    last = signals = 0;
    every(3000);
    __asm__ volatile("xor %%r11d, %%r11d\n1: inc %%r11\ncmp $300000000, %%r11\njb 1b\nmov %%r11, %0" : "=&r"(a) : : "r11", "cc");
    every(0);
    printf("%lu %d %d\n", a, signals > 3, odd);
}
