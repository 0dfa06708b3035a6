#include "sem.h"
static unsigned long landing;
static void h(int s, siginfo_t *i, void *v) {
    ucontext_t *c = v;
    greg_t *g = c->uc_mcontext.gregs;
    printf("%llx %llx %llx %llx %llx %llx\n", g[REG_RBX], g[REG_R12], g[REG_R13], g[REG_R14], g[REG_RDX], g[REG_EFL] & 0xcd5);
    printf("%lld\n", (long long)(landing - g[REG_RIP]));
    g[REG_RIP] = landing;
    g[REG_RAX] = 77;
}
int main(void) {
    on(SIGSEGV, h, 0);
    long a;
    __asm__ volatile("lea 1f(%%rip), %%rax\nmov %%rax, %1\nmov $0x11, %%ebx\nmov $0x22, %%r12\nmov $0x33, %%r13\nmov $0x44, %%r14\n"
                     "mov $0x55, %%edx\nxor %%ecx, %%ecx\ncmp $0x60, %%edx\nmovaps (%%rcx), %%xmm0\n1:" : "=a"(a), "=m"(landing)
                     : : "rbx", "rcx", "rdx", "r12", "r13", "r14", "memory", "cc", "xmm0");
    printf("%ld\n", a);
}
