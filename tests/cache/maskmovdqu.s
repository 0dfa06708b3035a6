# The byte-masked store: one write of 16 bytes (8 for MMX). The reference reads, merges and writes back.
# differs: Dr D1mr DLmr Dw D1mw DLmw
.include "cache.inc"
    .bss
    .balign 4096
area: .space 8192
    .text
START
    lea area+5(%rip), %rdi
    mov $50, %ebx
1:  pcmpeqd %xmm0, %xmm0
    psrlw $3, %xmm0
    maskmovdqu %xmm0, %xmm1
    pcmpeqd %mm0, %mm0
    maskmovq %mm0, %mm1
    emms
    add $40, %rdi
    dec %ebx
    jnz 1b
    EXIT
