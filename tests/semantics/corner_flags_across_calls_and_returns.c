// Flags are arguments and results, as some runtimes use them: carry across call, return, tail jump and indirect call.
#include "sem.h"

__asm__(".text\n"
        "one: clc\n ret\n"
        "many: stc\n ret\n"
        "pass: jmp *%rdx\n"
        "pass_return: push %rdx\n ret\n"
        "all: push %rax\n popfq\n ret\n"
        // f(target, n): calls it n times and counts how often it returns with carry.
        ".globl carries\n"
        "carries: push %rbx\n push %rbp\n xor %ebx, %ebx\n mov %rdi, %rdx\n"
        "1: xor %ebp, %ebp\n mov $1, %ecx\n call *%rdx\n cmovb %ecx, %ebp\n add %ebp, %ebx\n dec %esi\n jnz 1b\n"
        "mov %ebx, %eax\n pop %rbp\n pop %rbx\n ret\n"
        ".globl direct\n"
        "direct: push %rbx\n push %rbp\n xor %ebx, %ebx\n"
        "1: xor %ebp, %ebp\n mov $1, %ecx\n test %esi, %esi\n call one\n cmovb %ecx, %ebp\n add %ebp, %ebx\n"
        "call many\n adc $0, %ebx\n call one\n adc $0, %ebx\n dec %esi\n jnz 1b\n"
        "mov %ebx, %eax\n pop %rbp\n pop %rbx\n ret\n"
        // Flags in, flags out, over an indirect jump and over a pushed return address.
        ".globl through\n"
        "through: mov %rsi, %rax\n mov %rdi, %rcx\n lea 2f(%rip), %rdx\n push %rax\n popfq\n jmp *%rcx\n"
        "2: pushfq\n pop %rax\n ret\n");
int carries(void *target, int n);
int direct(int zero, int n);
long through(void *how, long flags);
extern char one[], many[], pass[], pass_return[];

int main(void) {
    printf("%d %d %d\n", carries(one, 1000), carries(many, 1000), direct(0, 1000));
    for (int round = 0; round < 3; round++)
        for (int bits = 0; bits < 64; bits++) {
            long flags = (bits & 1) | (bits & 2) << 1 | (bits & 4) << 2 | (bits & 8) << 3 | (bits & 16) << 3 | (bits & 32) << 6;
            long mask = 0x8d5;
            CHECK((through(pass, flags) & mask) == flags);
            CHECK((through(pass_return, flags) & mask) == flags);
        }
    puts("flags are kept");
    return 0;
}
