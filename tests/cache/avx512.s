# cpu: avx512f avx512bw avx512vl avx512dq avx512_vbmi2
# oracle: twin
# widest: 64
# Accesses of 64 bytes, operands under a mask, broadcasts, gathers and scatters, compressed and expanded operands. The
# reference has no AVX-512.
.include "cache.inc"
    .data
    .balign 64
i32: .long 0, 17, 300, -5, 1000, 2, 2, 77, 12, 13, 900, 800, 700, 1, 0, 99
i64: .quad 3, 800, -1, 512, 5, 6, 7, 70
    .bss
    .balign 4096
area: .space 65536
    .text
START
    TOUCH area, 16
    lea area+16384(%rip), %rdi
    xor %ebx, %ebx
1:  imul $0x9e3779b1, %ebx, %eax
    mov %eax, %edx
    shl $32, %rdx
    add %rdx, %rax
    kmovq %rax, %k1
    shr $7, %rax
    kmovq %rax, %k2
    kxorq %k3, %k3, %k3
    vmovdqu64 i32(%rip), %zmm1
    vmovdqu64 i64(%rip), %zmm2
    vmovdqu64 (%rdi), %zmm3
    vmovdqu64 %zmm3, 4096(%rdi)
    vmovdqa64 i32(%rip), %zmm3
    vmovntdq %zmm3, i64(%rip)
    vmovdqu64 %zmm2, i64(%rip)
    vaddps 200(%rdi), %zmm1, %zmm4
    vaddps 301(%rdi){1to16}, %zmm1, %zmm4
    vmovdqu8 400(%rdi), %zmm4{%k1}
    vmovdqu16 %zmm4, 500(%rdi){%k2}
    vmovdqu32 600(%rdi), %ymm4{%k1}{z}
    vmovdqu64 %xmm4, 700(%rdi){%k2}
    vmovups 800(%rdi), %zmm4{%k3}
    vaddpd 901(%rdi), %zmm1, %zmm4{%k1}
    vaddpd 1001(%rdi){1to8}, %zmm1, %zmm4{%k1}
    vaddss 1101(%rdi), %xmm1, %xmm4{%k1}
    vbroadcastss 1201(%rdi), %zmm4{%k2}
    vbroadcastf32x4 1301(%rdi), %zmm4{%k2}
    vpmovzxbw 1401(%rdi), %zmm4{%k1}
    vpmovqb %zmm4, 1501(%rdi){%k1}
    vpmovdb %zmm4, 1601(%rdi)
    vpermd 1701(%rdi), %zmm1, %zmm4{%k1}
    vcvtps2pd 1801(%rdi), %zmm4{%k1}
    vcompressps %zmm4, 1901(%rdi){%k1}
    vpexpandb 2001(%rdi), %zmm4{%k2}
    vpcompressw %zmm4, 2101(%rdi){%k1}
    vcmpps $1, 2201(%rdi), %zmm1, %k4{%k1}
    kmovq %k1, 2301(%rdi)
    kmovw 2401(%rdi), %k4
    kmovq %k1, %k5
    vgatherdps 2(%rdi,%zmm1,4), %zmm4{%k5}
    kmovq %k2, %k5
    vpgatherqd 2(%rdi,%zmm2,8), %ymm4{%k5}
    kmovq %k2, %k5
    vgatherdpd (%rdi,%ymm1,8), %zmm4{%k5}
    kmovq %k1, %k5
    vscatterdps %zmm4, 2(%rdi,%zmm1,4){%k5}
    kmovq %k1, %k5
    vscatterqpd %xmm4, 2(%rdi,%xmm2,8){%k5}
    vmovups 2501(%rdi), %zmm31
    vmovups %ymm30, 2601(%rdi)
    add $72, %rdi
    inc %ebx
    cmp $40, %ebx
    jb 1b
    EXIT
