// Return sites and jump targets with equal low 16 bits share a way to be found; one needs the flags, the others do not.
#include "sem.h"

__asm__(".text\n .balign 65536\n"
        // f(n): how often a call returns with carry, between calls whose flags nobody looks at.
        ".globl turns\n"
        "turns: push %rbx\n push %rbp\n xor %ebx, %ebx\n mov %edi, %ebp\n jmp 1f\n"
        ".balign 4096\n"
        "1: call without\n xor %eax, %eax\n jmp 2f\n"
        ".balign 65536\n .skip 4096\n"
        "2: call with\n adc $0, %ebx\n jmp 3f\n"
        ".balign 65536\n .skip 4096\n"
        "3: call without\n xor %eax, %eax\n jmp 4f\n"
        ".balign 65536\n .skip 4096\n"
        "4: call without\n adc $0, %ebx\n dec %ebp\n jnz 1b\n"
        "mov %ebx, %eax\n pop %rbp\n pop %rbx\n ret\n"
        "with: stc\n ret\n"
        "without: clc\n ret\n");
int turns(int n);

int main(void) {
    printf("%d\n", turns(1000));
    return 0;
}
