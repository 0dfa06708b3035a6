#include "sem.h"
int main(void) {
    unsigned char *p = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int n = 0;
    for (; n < 13; n++) p[n] = 0x66;
    p[n++] = 0x90, p[n++] = 0x90, p[n++] = 0xb8, p[n++] = 7, p[n++] = 0, p[n++] = 0, p[n++] = 0, p[n++] = 0xc3;
    printf("%d\n", ((int (*)(void))p)());
    // lock add qword fs:[r8+r9*8+disp32], imm32 with padding: 15 bytes
    unsigned long x = 5;
    __asm__ volatile(".byte 0x3e, 0x3e\nlock addq $0x12345678, 0x11111111(%0,%1,8)" : : "r"((char *)&x - 0x11111111), "r"(0L) : "memory", "cc");
    printf("%lx\n", x);
}
