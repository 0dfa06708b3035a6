#include "sem.h"
static long f(long n) { return n < 2 ? n : f(n - 1) + f(n - 2); }
__attribute__((used)) static long g(void) { return f(15); }
int main(void) {
    char *low = mmap((void *)0x10000, 65536, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), *high = mmap((void *)0x7f0000000000, 65536, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    char *tops[] = {low + 65536, high + 65536};
    for (int i = 0; i < 2; i++) {
        long r;
        __asm__ volatile("mov %%rsp, %%rbx\nmov %1, %%rsp\ncall *%2\nmov %%rbx, %%rsp" : "=a"(r) : "r"(tops[i]), "r"(g) : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
        printf("%ld\n", r);
    }
}
