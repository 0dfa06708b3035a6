# Push, pop, call, ret, enter, leave in all their forms; operands relative to the stack pointer.
.include "cache.inc"
    .data
    .balign 64
q: .quad 1, 2, 3, 4, f
w: .word 1, 2, 3
    .text
FUNCTION f
    ret
END f
FUNCTION g
    push %rbp
    mov %rsp, %rbp
    sub $40, %rsp
    mov %rax, -8(%rbp)
    call f
    leave
    ret $16
END g
FUNCTION deep
    push %rbx
    dec %ebx
    jz 1f
    call deep
1:  pop %rbx
    ret
END deep
START
    mov $50, %r12d
1:  push %rax
    push $1
    push $0x12345678
    push q(%rip)
    pushw w(%rip)
    pushw %ax
    pushfq
    popfq
    pop %bx
    pop q+8(%rip)
    push 8(%rsp)
    pop 8(%rsp)
    pop (%rsp)
    pop %rcx
    push %rax
    push %rbx
    call g
    enter $32, $0
    mov %rbp, (%rsp)
    leave
    lea f(%rip), %rax
    call *%rax
    call *q+32(%rip)
    mov $120, %ebx
    call deep
    push %rsp
    pop %rsp
    pop %rax
    lea -8(%rsp), %rsp
    mov %rsp, %rax
    lea stack_top(%rip), %rsp
    dec %r12d
    jnz 1b
    EXIT
