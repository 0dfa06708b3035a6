// A program that steps through itself with the trap flag: one SIGTRAP behind each instruction, at its original address.
#include "sem.h"
extern char first[], last[];
static unsigned long seen[64];
static volatile int n;
static volatile int inside;
static void step(int sig UNUSED, siginfo_t *info, void *context) {
    ucontext_t *uc = context;
    unsigned long rip = uc->uc_mcontext.gregs[REG_RIP];
    if (n < 64) seen[n++] = (rip - (unsigned long)first) << 8 | (info->si_code & 0xff);
    inside += (uc->uc_mcontext.gregs[REG_EFL] >> 8) & 1;
    if (rip >= (unsigned long)last) uc->uc_mcontext.gregs[REG_EFL] &= ~0x100;
}
__attribute__((noinline)) static unsigned long walk(void) {
    unsigned long r;
    __asm__ volatile("pushfq\n orq $0x100, (%%rsp)\n popfq\n"
                     "first: xor %%eax, %%eax\n add $5, %%rax\n cmp $5, %%rax\n je 1f\n ud2\n"
                     "1: call 2f\n jmp 3f\n"
                     "2: inc %%rax\n ret\n"
                     "3: mov $2, %%ecx\n 4: dec %%ecx\n jnz 4b\n"
                     "last: nop\n nop\n"
                     : "=a"(r)::"rcx", "memory", "cc");
    return r;
}
int main(void) {
    on(SIGTRAP, step, 0);
    for (int k = 0; k < 3; k++) {
        n = 0;
        inside = 0;
        printf("%lu\n", walk());
        for (int i = 0; i < n; i++) printf("%lx/%lu ", seen[i] >> 8, seen[i] & 0xff);
        printf("\n%d flags\n", inside);
    }
}
