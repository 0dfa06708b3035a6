# cpu: avx2 fma
# Fused multiplications and some others: one read of the whole operand, which the reference reads in pieces, or
# not whole (the counts of shifts).
# differs: Dr D1mr DLmr
.include "cache.inc"
    .bss
    .balign 4096
area: .space 16384
    .text
START
    lea area+7(%rip), %rdi
    lea area(%rip), %rsi
    mov $60, %ebx
1:  vfmadd231ps (%rdi), %ymm1, %ymm2
    vfmadd213pd 100(%rdi), %xmm1, %xmm2
    vfnmadd132sd 200(%rdi), %xmm1, %xmm2
    vfmsub231ss 300(%rdi), %xmm1, %xmm2
    vfmaddsub231pd 400(%rdi), %ymm1, %ymm2
    roundps $1, (%rsi), %xmm1
    cvtps2pd 500(%rdi), %xmm1
    vmovddup 600(%rdi), %ymm2
    vcvtps2pd 700(%rdi), %ymm2
    vperm2f128 $1, 800(%rdi), %ymm1, %ymm2
    vperm2i128 $1, 900(%rdi), %ymm1, %ymm2
    vpsllw 1001(%rdi), %xmm1, %xmm2
    vpsrad 1101(%rdi), %xmm1, %xmm2
    vpsrlq 1201(%rdi), %ymm1, %ymm2
    psllw 1200(%rsi), %xmm2
    add $72, %rdi
    dec %ebx
    jnz 1b
    EXIT
