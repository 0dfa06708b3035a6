# Pushes and pops between known registers and flags, which must all be as before: exits with 0 if they are.
        .globl _start
        .text
_start:
        mov     $200000, %r15d
again:
        lea     push(%rip), %rax
        call    one
        lea     pop(%rip), %rax
        call    one
        dec     %r15d
        jnz     again
        mov     $60, %eax
        xor     %edi, %edi
        syscall
one:    # a request at rax, with all registers and flags checked
        mov     $0x1111111111111111, %rbx
        mov     $0x2222222222222222, %rcx
        mov     $0x3333333333333333, %rdx
        mov     $0x4444444444444444, %rsi
        mov     $0x5555555555555555, %rdi
        mov     $0x6666666666666666, %r8
        mov     $0x7777777777777777, %r14
        mov     %rax, %r13
        movq    $0x1234567890abcdef, %r12
        mov     %r12, -8(%rsp)
        mov     %r12, -128(%rsp)
        # SF, ZF, AF and PF as r15 has it; ROL changes CF and OF natively.
        mov     %r15d, %eax
        shl     $8, %eax
        sahf
        mov     %r13, %rax
        rolq    $3, %rdi
        rolq    $13, %rdi
        rolq    $61, %rdi
        rolq    $51, %rdi
        xchgq   %rbx, %rbx
        mov     %rax, %r12
        lahf
        shr     $8, %eax
        xor     %r15d, %eax
        test    $0xd4, %al
        jnz     bad
        cmp     %r12, %r13
        jne     bad
        mov     $0x1111111111111111, %r13
        cmp     %r13, %rbx
        jne     bad
        mov     $0x2222222222222222, %r13
        cmp     %r13, %rcx
        jne     bad
        mov     $0x3333333333333333, %r13
        cmp     %r13, %rdx
        jne     bad
        mov     $0x4444444444444444, %r13
        cmp     %r13, %rsi
        jne     bad
        mov     $0x5555555555555555, %r13
        cmp     %r13, %rdi
        jne     bad
        mov     $0x6666666666666666, %r13
        cmp     %r13, %r8
        jne     bad
        mov     $0x7777777777777777, %r13
        cmp     %r13, %r14
        jne     bad
        mov     $0x1234567890abcdef, %r13
        cmp     %r13, -8(%rsp)
        jne     bad
        cmp     %r13, -128(%rsp)
        jne     bad
        ret
bad:
        mov     $60, %eax
        mov     $1, %edi
        syscall
        .data
        .p2align 3
push:   .quad   0x47520000, 5, 0, 0, 0, 0
pop:    .quad   0x47520001, 0, 0, 0, 0, 0
