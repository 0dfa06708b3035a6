# Every form of memory operand: bases, indexes, scales, displacements, RIP-relative, absolute, fs:, 32-bit addresses.
.include "rt.inc"
    .data
    .balign 16
table: .quad 0x1111111111111111, 0x2222222222222222, 0x3333333333333333, 0x4444444444444444
       .quad 0x5555555555555555, 0x6666666666666666, 0x7777777777777777, 0x8888888888888888
cell:  .quad 5
wide:  .long 7, 9
    .text
FUNCTION _start
    mov $158, %eax
    mov $0x1002, %edi
    lea table(%rip), %rsi
    syscall
    MIX %rax
    lea table(%rip), %rbx
    mov $2, %ecx
    call bases
    call indexes
    call relative
    call segments
    call narrow
    jmp finish
END _start
FUNCTION bases
    .irp r, rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11, r12, r13
    push %\r
    mov %rbx, %\r
    mov (%\r), %r14
    MIX %r14
    mov 8(%\r), %r14
    MIX %r14
    mov 0x20(%\r), %r14d
    MIX %r14
    lea -0x1000(%\r), %\r
    add 0x1008(%\r), %r15
    movzbl 0x1009(%\r), %r14d
    MIX %r14
    pop %\r
    .endr
    mov %rbp, %r14
    mov %rbx, %rbp
    mov (%rbp), %rax
    add 16(%rbp), %rax
    mov %r14, %rbp
    MIX %rax
    push %rbx
    mov (%rsp), %rax
    sub %rbx, %rax
    MIX %rax
    mov 8(%rsp), %rax
    lea (%rsp), %r8
    lea 8(%rsp), %r9
    sub %r8, %r9
    MIX %r9
    movl $77, -16(%rsp)
    mov -16(%rsp), %eax
    MIX %rax
    pop %rbx
    ret
END bases
FUNCTION indexes
    .irp s, 1, 2, 4, 8
    mov (%rbx,%rcx,\s), %rax
    MIX %rax
    mov 8(%rbx,%rcx,\s), %rax
    MIX %rax
    mov table(,%rcx,\s), %rax
    MIX %rax
    mov 0x1000-0x1000+table(,%rcx,\s), %eax
    MIX %rax
    lea 0x12345(%rbx,%rcx,\s), %rax
    sub %rbx, %rax
    MIX %rax
    .endr
    mov %rcx, %r12
    mov %rbx, %r13
    mov (%r13,%r12,8), %rax
    MIX %rax
    xchg %r12, %r13
    mov (%r12,%r13,8), %rax
    MIX %rax
    mov $-1, %r9
    mov 16(%rbx,%r9,8), %rax
    MIX %rax
    push %rcx
    mov (%rsp,%rcx,1), %al
    pop %rcx
    push $123
    mov $0, %esi
    mov (%rsp,%rsi,8), %rax
    add $8, %rsp
    MIX %rax
    addq $3, 8(%rbx,%rcx,4)
    notl 4(%rbx,%rcx,8)
    mov 16(%rbx), %rax
    MIX %rax
    ret
END indexes
FUNCTION relative
    mov cell(%rip), %rax
    MIX %rax
    addq $0x1234567, cell(%rip)
    incb cell+1(%rip)
    cmpl $9, wide+4(%rip)
    FLAGS
    movw $0x4321, wide(%rip)
    movabs $table, %rax
    sub %rbx, %rax
    MIX %rax
    mov cell(%rip), %eax
    MIX %rax
    imul $3, cell(%rip), %rax
    MIX %rax
    shll $3, wide(%rip)
    testb $8, wide+1(%rip)
    FLAGS 0xc45
    xchg %rax, cell(%rip)
    MIX %rax
    movabs cell, %rax
    MIX %rax
    movabs %al, cell
    mov cell, %ecx
    MIX %rcx
    pushq cell(%rip)
    popq wide(%rip)
    mov wide(%rip), %rcx
    MIX %rcx
    movdqu table+16(%rip), %xmm0
    pshufd $0x1b, table(%rip), %xmm1
    paddd %xmm1, %xmm0
    movq %xmm0, %rax
    MIX %rax
    mov $2, %ecx
    ret
END relative
FUNCTION segments
    mov %fs:0, %rax
    MIX %rax
    mov %fs:8, %rax
    MIX %rax
    mov $24, %edx
    mov %fs:(%rdx), %rax
    MIX %rax
    mov %fs:8(%rdx,%rcx,8), %rax
    MIX %rax
    addq $1, %fs:0
    mov (%rbx), %rax
    MIX %rax
    movaps %fs:16, %xmm2
    movq %xmm2, %rax
    MIX %rax
    ret
END segments
FUNCTION narrow
    movabs $0xffff000000000000, %rdx
    add %rbx, %rdx
    mov (%edx), %rax
    MIX %rax
    mov 8(%edx,%ecx,4), %rax
    MIX %rax
    lea -1(%edx), %rax
    sub %rbx, %rax
    MIX %rax
    mov table(%eip), %rax
    MIX %rax
    addl $4, table(%eip)
    mov %fs:(%ecx), %al
    MIX %rax
    ret
END narrow
