// Instructions that lead to themselves while the trap flag is set: a branch is one trap each time, and so is each repetition.
#include "sem.h"
#include <string.h>
extern char first[], last[];
static unsigned long seen[256];
static volatile int n;
static void step(int sig UNUSED, siginfo_t *info, void *context) {
    ucontext_t *uc = context;
    unsigned long rip = uc->uc_mcontext.gregs[REG_RIP];
    if (info->si_code != TRAP_TRACE) printf("kind %d\n", info->si_code);
    if (n < 256) seen[n++] = rip - (unsigned long)first;
    if (rip >= (unsigned long)last) uc->uc_mcontext.gregs[REG_EFL] &= ~0x100;
}
static char from[64], to[64];
__attribute__((noinline)) static unsigned long walk(void) {
    unsigned long r = (unsigned long)"0123456789";
    char *di = to;
    __asm__ volatile("pushfq\n orq $0x100, (%%rsp)\n popfq\n"
                     "first: mov $3, %%ecx\n 1: loop 1b\n"
                     "mov $3, %%ecx\n rep movsb\n"
                     "mov $2, %%ecx\n repe cmpsb\n"
                     "xor %%ecx, %%ecx\n rep stosb\n"
                     "mov $2, %%ecx\n 3: lahf\n 2: loop 3b\n"
                     "mov $3, %%ecx\n 4: loop 4b\n"
                     "mov $2, %%ecx\n 5: rep movsb\n jrcxz 6f\n ud2\n"
                     "6: nop\nlast: nop\n nop\n"
                     : "+S"(r), "+D"(di)::"rax", "rcx", "memory", "cc");
    return di - to;
}
int main(void) {
    on(SIGTRAP, step, 0);
    for (int k = 0; k < 6; k++) {
        n = 0;
        printf("%lu %s\n", walk(), to);
        for (int i = 0; i < n; i++) printf("%lx ", seen[i]);
        printf("\n");
    }
}
