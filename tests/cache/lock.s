# LOCK prefixes and XCHG. The reference books a branch for the retry of each, which no instruction makes.
# differs: Bc Bcm
.include "cache.inc"
    .bss
    .balign 64
area: .space 8192
    .text
START
    lea area(%rip), %rsi
    mov $5, %edx
    xor %ebx, %ebx
1:  mov %ebx, %eax
    shl $7, %eax
    lea (%rsi,%rax), %rdi
    lock addb $1, (%rdi)
    lock addl %edx, 4(%rdi)
    lock incl 8(%rdi)
    lock decq 16(%rdi)
    lock notl 24(%rdi)
    lock negw 28(%rdi)
    lock orl $1, 32(%rdi)
    lock andq %rdx, 40(%rdi)
    lock xorb $3, 48(%rdi)
    lock subl %edx, 52(%rdi)
    lock sbbl $3, 56(%rdi)
    lock adcq $3, 64(%rdi)
    mov $3, %r8d
    lock xadd %r8d, 72(%rdi)
    lock xadd %r8, 80(%rdi)
    xchg %r8, 88(%rdi)
    xchg %r8b, 96(%rdi)
    lock xchg %r8w, 98(%rdi)
    lock btsl $5, 100(%rdi)
    lock btrq $5, 104(%rdi)
    lock btcl %edx, 112(%rdi)
    mov (%rdi), %eax
    lock cmpxchg %edx, (%rdi)
    lock cmpxchg %edx, 4(%rdi)
    mov %rbx, %r9
    xor %eax, %eax
    xor %edx, %edx
    lock cmpxchg8b 120(%rdi)
    cmpxchg8b 120(%rdi)
    lock cmpxchg16b 48(%rdi)
    cmpxchg16b 16(%rdi)
    mov %r9, %rbx
    mfence
    inc %ebx
    cmp $60, %ebx
    jne 1b
    EXIT
