# Indirect jumps and calls through registers, tables and the stack; tables read as data, targets that change.
.include "cache.inc"
    .data
    .balign 8
table: .quad c0, c1, c2, c3, c4, c5, c6, c7
calls: .quad g0, g1, g2
    .text
.macro CASE n
    .balign 32
c\n: add $\n, %eax
    jmp back
.endm
FUNCTION g0
    ret
END g0
FUNCTION g1
    nop
    ret
END g1
FUNCTION g2
    lea g0(%rip), %rsi
    jmp *%rsi
END g2
START
    mov $1, %r8d
    mov $600, %ebx
1:  imul $1103515245, %r8d, %r8d
    add $12345, %r8d
    mov %r8d, %ecx
    shr $16, %ecx
    and $7, %ecx
    lea table(%rip), %rdx
    jmp *(%rdx,%rcx,8)
    CASE 0
    CASE 1
    CASE 2
    CASE 3
    CASE 4
    CASE 5
    CASE 6
    CASE 7
back:
    mov %ebx, %eax
    xor %edx, %edx
    mov $3, %ecx
    div %ecx
    lea calls(%rip), %rcx
    call *(%rcx,%rdx,8)
    mov (%rcx,%rdx,8), %rax
    call *%rax
    lea 2f(%rip), %rax
    push %rax
    ret
2:  push calls(%rip)
    call *(%rsp)
    pop %rax
    dec %ebx
    jnz 1b
    EXIT
