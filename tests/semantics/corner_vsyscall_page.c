#include "sem.h"
int main(void) {
    long (*t)(long *) = (void *)0xffffffffff600400;
    char maps[4096] = {0};
    FILE *f = fopen("/proc/self/maps", "r");
    int there = 0;
    while (fgets(maps, sizeof maps, f)) there |= strstr(maps, "[vsyscall]") != 0;
    if (there) printf("%d\n", labs(t(0) - time(0)) <= 1); else printf("none\n");
}
