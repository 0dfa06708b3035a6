# cpu: avx2
# Gathers with some elements disabled. The reference reads at the stack pointer in their place.
# differs: Dr D1mr DLmr
.include "cache.inc"
    .data
    .balign 32
i32: .long 0, 17, 300, -5, 1000, 2, 2, 77
m32: .long -1, 0, 0x80000000, 0x7fffffff, 0, -1, 1, -1
zero: .long 0, 0, 0, 0, 0, 0, 0, 0
    .bss
    .balign 4096
area: .space 16384
    .text
START
    TOUCH area, 4
    lea area+4096(%rip), %rsi
    mov $40, %ebx
1:  vmovdqu i32(%rip), %ymm1
    vmovdqu m32(%rip), %ymm3
    vgatherdps %ymm3, 2(%rsi,%ymm1,4), %ymm4
    vmovdqu zero(%rip), %ymm3
    vgatherdpd %ymm3, (%rsi,%xmm1,8), %ymm4
    add $72, %rsi
    dec %ebx
    jnz 1b
    EXIT
