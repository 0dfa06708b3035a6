#include "sem.h"
static sigjmp_buf back;
static void *volatile at; static volatile int code;
static void h(int s, siginfo_t *i, void *c) { at = i->si_addr; code = i->si_code; siglongjmp(back, 1); }
int main(void) {
    on(SIGSEGV, h, 0);
    if (sigsetjmp(back, 1) == 0) *(volatile int *)0x1234 = 5;
    printf("%p %d\n", at, code);
    char *p = mmap((void *)0x500000000, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (sigsetjmp(back, 1) == 0) *(volatile char *)(p + 77) = 5;
    printf("%p %d\n", at, code);
    if (sigsetjmp(back, 1) == 0) ((void (*)(void))(p + 16))();
    printf("%p %d\n", at, code);
    if (sigsetjmp(back, 1) == 0) *(volatile int *)0x8888888888888888 = 5;
    printf("%p %d\n", at, code);
}
