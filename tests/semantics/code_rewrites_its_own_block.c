#include "sem.h"
int main(void) {
    unsigned char *p = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    // mov byte [rip+2], dil; jmp +0; mov al, 0; movzx eax, al; ret: the store changes the constant that follows at once.
    unsigned char c[] = {0x40, 0x88, 0x3d, 0x03, 0, 0, 0, 0xeb, 0x00, 0xb0, 0x00, 0x0f, 0xb6, 0xc0, 0xc3};
    memcpy(p, c, sizeof c);
    long sum = 0;
    for (int i = 0; i < 250; i++) sum = sum * 3 + ((int (*)(int))p)(i);
    printf("%ld\n", sum);
}
