// Code whose mapping the other table's system calls change: each time what is there now runs.
#include "int80.h"
static void set(unsigned char *p, int value) { p[0] = 0xb8, memcpy(p + 1, &value, 4), p[5] = 0xc3; } // mov eax, value; ret
int main(void) {
    const long at = 0x10000000;
    unsigned char *p = (unsigned char *)at;
    int (*f)(void) = (int (*)(void))at;
    for (int i = 0; i < 3; i++) {
        // Nothing of the flags but MAP_PRIVATE, MAP_FIXED and MAP_ANONYMOUS.
        CHECK(int80(NR_MMAP2, at, 4096, 3, 0x32, -1) == at);
        set(p, i);
        CHECK(int80(NR_MPROTECT, at, 4096, 5, 0, 0) == 0);
        printf("%d", f());
        CHECK(int80(NR_MPROTECT, at, 4096, 7, 0, 0) == 0);
        set(p, i + 10);
        CHECK(int80(NR_MPROTECT, at, 4096, 5, 0, 0) == 0);
        printf(" %d\n", f());
        // The second time something else is mapped over it.
        if (i != 1) CHECK(int80(NR_MUNMAP, at, 4096, 0, 0, 0) == 0);
    }
    int s;
    fflush(stdout);
    if (fork() == 0) f();
    wait(&s);
    show_status(s);
}
