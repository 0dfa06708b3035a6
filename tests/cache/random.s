# Pseudo-random accesses of 1 to 32 bytes over 256 KiB, reads and writes mixed.
# cpu: avx2
.include "cache.inc"
    .bss
    .balign 4096
area: .space 300000
    .text
START
    lea area(%rip), %rsi
    mov $1, %r8d
    mov $1200, %ebx
1:  .irp i, 1, 2, 3, 4, 5, 6, 7
    imul $1103515245, %r8d, %r8d
    add $12345, %r8d
    mov %r8d, %ecx
    shr $14, %ecx
    .if \i == 1
    mov (%rsi,%rcx), %al
    .elseif \i == 2
    mov %ax, (%rsi,%rcx)
    .elseif \i == 3
    addl %eax, (%rsi,%rcx)
    .elseif \i == 4
    mov (%rsi,%rcx), %rdx
    .elseif \i == 5
    movups %xmm0, (%rsi,%rcx)
    .elseif \i == 6
    vmovups (%rsi,%rcx), %ymm1
    .else
    and $0xfff, %ecx
    incq (%rsi,%rcx)
    .endif
    .endr
    dec %ebx
    jnz 1b
    EXIT
