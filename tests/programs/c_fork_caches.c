// cc: -O1
// oracle: valgrind
// A forked process goes on with the caches that its creator has filled: it uses what is left in them, and replaces all of it.
#include "../cache/cache.h"
static u8 area[96 << 10] __attribute__((aligned(4096)));
static i64 syscall4(i64 number, i64 a, i64 b, i64 c, i64 d) {
    register i64 fourth __asm__("r10") = d;
    i64 result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
}
__attribute__((noinline)) static u64 walk(u32 bytes) {
    u64 sum = 0;
    for (u32 i = 0; i < bytes; i += 64) sum += *(volatile u64 *)(area + i);
    return sum;
}
int run(void) {
    u64 sum = walk(24 << 10);
    for (int round = 0; round < 3; round++) {
        i64 pid = syscall4(57, 0, 0, 0, 0);
        if (pid == 0) {
            for (int again = 0; again < 3; again++) sum += walk(8 << 10) + walk(sizeof area);
            return sum == 1;
        }
        syscall4(61, -1, 0, 0, 0);
        sum += walk(sizeof area);
    }
    return sum == 1;
}
