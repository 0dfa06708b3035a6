# cpu: avx2
# Gathers with all elements enabled: 32- and 64-bit indices, floats and doubles, elements across lines. (With elements
# disabled, the reference reads something else in their place: see masked_gather.s.)
.include "cache.inc"
    .data
    .balign 32
i32: .long 0, 17, 300, -5, 1000, 2, 2, 77
i64: .quad 3, 800, -1, 512
    .bss
    .balign 4096
area: .space 16384
    .text
START
    TOUCH area, 4
    lea area+4096(%rip), %rsi
    mov $40, %ebx
1:  vmovdqu i32(%rip), %ymm1
    vmovdqu i64(%rip), %ymm2
    vpcmpeqd %ymm3, %ymm3, %ymm3
    vgatherdps %ymm3, 2(%rsi,%ymm1,4), %ymm4
    vpcmpeqd %ymm3, %ymm3, %ymm3
    vgatherdpd %ymm3, (%rsi,%xmm1,8), %ymm4
    vpcmpeqd %ymm3, %ymm3, %ymm3
    vgatherqps %xmm3, 62(%rsi,%ymm2,4), %xmm4
    vpcmpeqd %ymm3, %ymm3, %ymm3
    vgatherqpd %ymm3, 60(%rsi,%ymm2,8), %ymm4
    vpcmpeqd %ymm3, %ymm3, %ymm3
    vpgatherdd %xmm3, (%rsi,%xmm1,1), %xmm4
    vpcmpeqd %ymm3, %ymm3, %ymm3
    vpgatherdq %xmm3, (%rsi,%xmm1,2), %xmm4
    vpcmpeqd %ymm3, %ymm3, %ymm3
    vpgatherqd %xmm3, (%rsi,%xmm2,4), %xmm4
    vpcmpeqd %ymm3, %ymm3, %ymm3
    vpgatherqq %xmm3, (%rsi,%xmm2,8), %xmm4
    add $72, %rsi
    dec %ebx
    jnz 1b
    EXIT
