// What a thread has in its registers when it begins is what its creator had then, whatever that does meanwhile.
#include "sem.h"
#include <linux/sched.h>
enum { THREADS = 300 };
static volatile int ended;
static volatile unsigned odd;
// One each: a thread is on its own until the kernel has ended it, which nobody is told of.
static char stacks[THREADS][16384] __attribute__((aligned(64)));

static void spin(unsigned long n) {
    __asm__ volatile("1: lea 3(%%r8), %%r8\nlea 5(%%r9), %%r9\nlea 7(%%r10), %%r10\nmov %%r8, %%r11\ndec %0\njnz 1b" : "+r"(n) : : "r8", "r9", "r10", "r11", "cc");
}

static void child(unsigned long n, unsigned long r8, unsigned long r9, unsigned long r10) {
    odd += r8 != n * 3 || r9 != n * 5 || r10 != n * 7;
    ended++;
    syscall(SYS_exit, 0);
}

int main(void) {
    unsigned long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    for (unsigned long n = 1; n <= THREADS; n++) {
        long made = SYS_clone;
        // clone ignores its sixth argument, and the others without further flags.
        __asm__ volatile("mov %1, %%r8\nmov %2, %%r9\nmov %3, %%r10\nsyscall\ntest %%eax, %%eax\njnz 1f\nmov %4, %%rdi\nmov %%r8, %%rsi\nmov %%r9, %%rdx\nmov %%r10, %%rcx\n"
                         "call *%5\nud2\n1:" : "+a"(made) : "r"(n * 3), "r"(n * 5), "r"(n * 7), "r"(n), "r"(child), "D"(flags),
                         "S"(stacks[n - 1] + sizeof stacks[0] - 128), "d"(0) : "rcx", "r8", "r9", "r10", "r11", "memory", "cc");
        CHECK(made > 0);
        spin(n * 20);
        while (ended < (int)n) spin(10);
    }
    printf("%d %u\n", ended, odd);
}
