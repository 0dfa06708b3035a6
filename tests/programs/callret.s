# Calls and returns of every kind, and the stack operations around them.
.include "rt.inc"
    .data
target: .quad leaf
    .balign 16
    .space 4096
stack2:
slot: .quad 0, 0
    .text
FUNCTION _start
    mov $200, %ebx
1:  call leaf
    lea leaf(%rip), %rax
    call *%rax
    call *target(%rip)
    lea target(%rip), %rax
    call *(%rax)
    mov $1, %ecx
    call *-8(%rax,%rcx,8)
    push $17
    push %rbx
    call popping
    call tail
    call next_pc
    push target(%rip)
    call *(%rsp)
    add $8, %rsp
    call memory
    dec %ebx
    jnz 1b
    mov $15, %edi
    call fib
    MIX %rax
    mov $50, %edi
    call odd
    MIX %rax
    call switched
    call framed
    jmp finish
END _start
FUNCTION leaf
    add $3, %r15
    ret
END leaf
FUNCTION popping
    mov 8(%rsp), %rdx
    add 16(%rsp), %rdx
    MIX %rdx
    ret $16
END popping
FUNCTION tail
    inc %r15
    jmp leaf
END tail
FUNCTION next_pc
    call 1f
1:  pop %rdx
    lea 1b(%rip), %rax
    sub %rdx, %rax
    MIX %rax
    lea 2f(%rip), %rax
    push %rax
    rep ret
2:  ret
END next_pc
FUNCTION memory
    sub $24, %rsp
    push %rbx
    popq slot(%rip)
    pushq slot(%rip)
    popq (%rsp)
    pushq 8(%rsp)
    popq 8(%rsp)
    pushq (%rsp)
    pop %rax
    MIX %rax
    lea 3f(%rip), %rax
    mov %rax, 16(%rsp)
    push %rsp
    pop %rax
    sub %rsp, %rax
    MIX %rax
    pushq (%rsp)
    popq (%rsp)
    pushw $0x1234
    pop %cx
    MIX %rcx
    push $-5
    pop %rcx
    MIX %rcx
    push $0x12345678
    pop %rcx
    MIX %rcx
    add $16, %rsp
    ret
3:  ret
END memory
FUNCTION fib
    cmp $2, %edi
    jae 1f
    mov %edi, %eax
    ret
1:  push %rdi
    dec %edi
    call fib
    pop %rdi
    push %rax
    sub $2, %edi
    call fib
    pop %rdx
    add %rdx, %rax
    ret
END fib
FUNCTION odd
    xor %eax, %eax
    test %edi, %edi
    jz 1f
    dec %edi
    jmp even
1:  ret
END odd
FUNCTION even
    mov $1, %eax
    test %edi, %edi
    jz 1f
    dec %edi
    jmp odd
1:  ret
END even
FUNCTION switched
    mov %rsp, %rbp
    lea stack2(%rip), %rsp
    call leaf
    push %rbx
    push %rbp
    pop %rsp
    mov %rsp, %rax
    sub %rbp, %rax
    MIX %rax
    lea stack2(%rip), %rax
    xchg %rsp, %rax
    call leaf
    xchg %rax, %rsp
    ret
END switched
FUNCTION framed
    enter $32, $0
    movq $5, -8(%rbp)
    stc
    pushfq
    popq -16(%rbp)
    mov -16(%rbp), %rax
    and $0x8c5, %eax
    MIX %rax
    mov $0x8d5, %eax
    push %rax
    popfq
    FLAGS 0x8d5
    leave
    ret
END framed
