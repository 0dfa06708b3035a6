# LOCK prefixed and other atomic instructions, CMPXCHG8B and 16B, XADD, XCHG, bit tests on memory.
.include "rt.inc"
    .data
    .balign 16
c: .quad 10, 20, 30, 40
    .text
FUNCTION _start
    mov $100, %ebx
1:  lock addq $3, c(%rip)
    FLAGS
    lock xadd %rbx, c+8(%rip)
    lock xadd %rbx, c+8(%rip)
    sub c+8(%rip), %rbx
    neg %rbx
    lock incl c(%rip)
    lock decb c+1(%rip)
    lock orw $0x101, c+2(%rip)
    lock andl $0x7fffffff, c+4(%rip)
    lock xorq $0x55, c+16(%rip)
    lock notq c+16(%rip)
    lock negl c+16(%rip)
    FLAGS
    lock sbbl $1, c+20(%rip)
    lock adcb $1, c+21(%rip)
    FLAGS
    lock btsq $5, c(%rip)
    FLAGS 1
    mov $67, %ecx
    lock btrq %rcx, c(%rip)
    FLAGS 1
    mov $130, %ecx
    btcq %rcx, c(%rip)
    btl $3, c(%rip)
    FLAGS 1
    mov c(%rip), %rax
    mov $99, %ecx
    lock cmpxchg %rcx, c(%rip)
    FLAGS
    lock cmpxchg %rcx, c+8(%rip)
    FLAGS
    MIX %rax
    cmpxchg %ecx, c+8(%rip)
    MIX %rax
    push %rbx
    mov c(%rip), %rax
    mov c+8(%rip), %rdx
    mov $7, %ebx
    mov $8, %ecx
    lock cmpxchg16b c(%rip)
    FLAGS 0x40
    xor %edx, %edx
    lock cmpxchg16b c(%rip)
    FLAGS 0x40
    MIX %rdx
    lock cmpxchg8b c(%rip)
    MIX %rax
    pop %rbx
    mov %rbx, %rax
    xchg %rax, c+24(%rip)
    xchg %al, c+25(%rip)
    MIX %rax
    mov c(%rip), %rax
    MIX %rax
    mfence
    pause
    sub $1, %bl
    test %bl, %bl
    jg 2f
    jmp finish
2:  dec %r12d
    cmp $-300, %r12d
    jg 1b
    jmp finish
END _start
