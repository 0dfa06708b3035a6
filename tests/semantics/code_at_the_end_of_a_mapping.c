#include "sem.h"
static sigjmp_buf back;
static char *volatile at;
static void h(int s, siginfo_t *i, void *c) { at = i->si_addr; siglongjmp(back, 1); }
int main(void) {
    on(SIGSEGV, h, 0);
    unsigned char *p = mmap(0, 8192, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(p + 4096, 4096);
    p[4093] = 0x31, p[4094] = 0xc0, p[4095] = 0xc3;
    printf("%d\n", ((int (*)(void))(p + 4093))());
    p[4095] = 0x90;
    if (sigsetjmp(back, 1) == 0) ((int (*)(void))(p + 4093))();
    printf("%ld\n", (long)(at - (char *)p));
    p[4095] = 0xb8;
    if (sigsetjmp(back, 1) == 0) ((int (*)(void))(p + 4093))();
    printf("%ld\n", (long)(at - (char *)p));
}
