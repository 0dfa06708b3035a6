// cc: -O1 -static -nostdlib -ffreestanding -fno-stack-protector
// Hundreds of 32-bit system calls, each made by an instruction of its own and with something in r9, which no kernel changes; by
// sixteen processes that differ in how many branches they pass before. So whatever numbers a profiler gives to its stops, each of
// some thousand is that of such a call in one of them.
#include <sys/syscall.h>

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

static long call(long nr, long a, long b, long c, long d) {
    long result;
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall" : "=a"(result) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
    return result;
}

// The calls, behind so many branches more.
#define CALLS(branches)                                                                         \
    case branches:                                                                              \
        __asm__ volatile(                                                                       \
            ".rept " TEXT(branches) "\n"                                                        \
            "    test %[limit], %[limit]\n"                                                     \
            "    je 2f\n"                                                                       \
            ".endr\n"                                                                           \
            ".rept 450\n"                                                                       \
            "    mov $0x1234567, %%r9d\n"                                                       \
            "    mov $20, %%eax\n"                                                              \
            "    int $0x80\n"                                                                   \
            "    cmp $0x1234567, %%r9d\n"                                                       \
            "    je 1f\n"                                                                       \
            "    inc %[lost]\n"                                                                 \
            "1:\n"                                                                              \
            ".endr\n"                                                                           \
            "2:\n"                                                                              \
            : [lost] "+r"(lost)                                                                 \
            : [limit] "r"(&limit)                                                               \
            : "rax", "r9", "memory", "cc");                                                     \
        break;

static long lost_behind(int branches) {
    long limit[2];
    long lost = 0;
    switch (branches) {
        CALLS(0) CALLS(1) CALLS(2) CALLS(3) CALLS(4) CALLS(5) CALLS(6) CALLS(7)
        CALLS(8) CALLS(9) CALLS(10) CALLS(11) CALLS(12) CALLS(13) CALLS(14) CALLS(15)
    }
    return lost;
}

void _start(void) {
    long all = 0;
    for (int child = 0; child < 16; child++) {
        if (call(SYS_fork, 0, 0, 0, 0) == 0) {
            call(SYS_exit, lost_behind(child) != 0, 0, 0, 0);
        }
        int status = 0;
        call(SYS_wait4, -1, (long)&status, 0, 0);
        all += status != 0;
    }
    char text[] = "00 processes lost a register\n";
    text[0] += all / 10;
    text[1] += all % 10;
    call(SYS_write, 1, (long)text, sizeof text - 1, 0);
    call(SYS_exit, 0, 0, 0, 0);
}
