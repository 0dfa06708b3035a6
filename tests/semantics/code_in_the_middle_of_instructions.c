#include "sem.h"
int main(void) {
    unsigned char *p = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char c[] = {0xb8, 0xb8, 0xb8, 0xb8, 0xb8, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3};
    memcpy(p, c, sizeof c);
    for (int i = 0; i < 5; i++) printf("%x\n", ((int (*)(void))(p + i))());
}
