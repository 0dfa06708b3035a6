// Accesses that are not aligned: allowed, refused by the instruction, and refused because the program has asked for that.
#include "sem.h"
static sigjmp_buf back;
static volatile int signo, code, here;
static char *volatile at;
static void h(int s, siginfo_t *i, void *c) {
    greg_t *r = ((ucontext_t *)c)->uc_mcontext.gregs;
    signo = s, code = i->si_code, at = i->si_addr;
    here = *(unsigned char *)r[REG_RIP];
    // What asks for it must not stay: it would hit the C library, too.
    r[REG_EFL] &= ~0x40000ll;
    __asm__ volatile("pushf\nandl $~0x40000, (%%rsp)\npopf" : : : "memory", "cc");
    siglongjmp(back, 1);
}
static char area[8192] __attribute__((aligned(4096)));
int main(void) {
    on(SIGSEGV, h, SA_NODEFER);
    on(SIGBUS, h, SA_NODEFER);
    // Across lines and pages.
    for (int i = 0; i < 2; i++) {
        long *p = (long *)(area + (i ? 4096 - 3 : 64 - 5)), v = 0x123456789abcdef0;
        *p = v;
        __asm__ volatile("lock addq $5, %0" : "+m"(*p) : : "cc");
        v = 7;
        __asm__ volatile("xchg %0, %1" : "+r"(v), "+m"(*p));
        printf("%lx %lx\n", v, *p);
    }
    if (sigsetjmp(back, 1) == 0) __asm__ volatile("movaps 1(%0), %%xmm0" : : "r"(area) : "xmm0");
    printf("%d %d %p %02x\n", signo, code, (void *)at, here);
    // With the alignment check on, as a user's program may have it.
    if (sigsetjmp(back, 1) == 0) {
        long sum = 0;
        __asm__ volatile("pushf\norl $0x40000, (%%rsp)\npopf\n"
                         "mov $1000, %%ecx\n1: add (%1), %0\nxor $1, %0\nsub $1, %%ecx\njnz 1b\n"
                         "mov 3(%1), %%eax\n"
                         : "+r"(sum) : "r"(area) : "rax", "rcx", "memory", "cc");
        printf("no alignment check\n");
    }
    printf("%d %d %p %02x\n", signo, code, (void *)at, here);
}
