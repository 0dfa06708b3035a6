# Blocks that jump to themselves: one instruction long, with live flags, with memory, nested, entered in the middle, by call.
.include "rt.inc"
    .data
n: .quad 500
    .text
FUNCTION _start
    mov $1000, %ecx
1:  dec %ecx
    jnz 1b
    mov $1000, %ecx
    stc
2:  adc $0, %rax
    dec %ecx
    jnz 2b
    FLAGS
    MIX %rax
3:  subq $1, n(%rip)
    jg 3b
    FLAGS
    mov $30, %edx
4:  mov %edx, %ecx
5:  add %rcx, %r15
    loop 5b
    dec %edx
    jnz 4b
    mov $77, %ecx
    jmp 7f
6:  add $5, %r15
7:  add $3, %r15
    sub $1, %ecx
    ja 6b
    mov $50, %ecx
    xor %eax, %eax
8:  cmp %rax, %rax
    lea 1(%rax), %rax
    lea -1(%rcx), %rcx
    jrcxz 9f
    je 8b
9:  MIX %rax
    mov $60, %ebx
    lea 10f(%rip), %rsi
    lea 11f(%rip), %rdi
10: dec %ebx
    cmovz %rdi, %rsi
    jmp *%rsi
11: mov $40, %ebx
12: push %rdi
    dec %ebx
    jz 13f
    lea 12b(%rip), %rdi
    pop %rax
    jmp *%rdi
13: pop %rdi
    call recursive
    jmp finish
END _start
FUNCTION recursive
    inc %r12d
    cmp $100, %r12d
    jge 1f
    call recursive
1:  add $1, %r15
    ret
END recursive
