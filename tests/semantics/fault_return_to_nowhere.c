#include "sem.h"
static sigjmp_buf back;
static void *volatile at;
static void h(int s, siginfo_t *i, void *c) { at = i->si_addr; printf("%d\n", (void *)((ucontext_t *)c)->uc_mcontext.gregs[REG_RIP] == at); siglongjmp(back, 1); }
int main(void) {
    on(SIGSEGV, h, 0);
    if (sigsetjmp(back, 1) == 0) __asm__ volatile("push $0x5000\nret");
    printf("%p\n", at);
    if (sigsetjmp(back, 1) == 0) __asm__ volatile("mov $0x6000, %%eax\njmp *%%rax" : : : "rax");
    printf("%p\n", at);
    if (sigsetjmp(back, 1) == 0) __asm__ volatile("xor %%eax, %%eax\ncall *%%rax" : : : "rax");
    printf("%p\n", at);
}
