#include "sem.h"
#include <asm/prctl.h>
int main(void) {
    static unsigned long area[4] = {11, 22, 33, 44};
    unsigned long x = 0, base = 0;
    CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, area) == 0);
    for (int i = 0; i < 100; i++) {
        unsigned long y;
        __asm__ volatile("mov %%gs:8, %0\nincq %%gs:16" : "=r"(y) : : "memory");
        x += y;
    }
    CHECK(syscall(SYS_arch_prctl, ARCH_GET_GS, &base) == 0);
    printf("%lu %lu %d\n", x, area[2], base == (unsigned long)area);
}
