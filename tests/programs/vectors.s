# cpu: avx2 fma bmi2
# SSE to AVX2, FMA, BMI, conversions and masks, with memory operands of all kinds.
.include "rt.inc"
    .data
    .balign 32
v: .float 1.5, -2.25, 3.0, 4.75, 0.5, 100.0, -7.0, 8.0
w: .quad 0x0123456789abcdef, 0xfedcba9876543210, 0x00ff00ff00ff00ff, 0x8000000080000000
x: .long 0, 3, 5, 1, 7, 2, 4, 6
m: .long -1, 0, -1, 0, 0, -1, -1, 0
o: .space 64
    .text
.macro OUT reg
    vmovdqu %ymm\reg, o(%rip)
    .irp i, 0, 8, 16, 24
    mov o+\i(%rip), %rax
    MIX %rax
    .endr
.endm
FUNCTION _start
    mov $25, %ebx
1:  call sse
    call avx
    call avx2
    call fma
    call bmi
    dec %ebx
    jnz 1b
    jmp finish
END _start
FUNCTION sse
    pxor %xmm0, %xmm0
    movaps v(%rip), %xmm1
    addps v+16(%rip), %xmm1
    mulss v+4(%rip), %xmm1
    sqrtps w+16(%rip), %xmm2
    cvtsi2sd %ebx, %xmm3
    cvtsd2ss %xmm3, %xmm4
    divsd v(%rip), %xmm3
    cvttsd2si %xmm3, %rax
    MIX %rax
    comisd %xmm3, %xmm1
    FLAGS 0x45
    movmskps %xmm1, %eax
    MIX %rax
    pshufb w(%rip), %xmm1
    pcmpeqb %xmm1, %xmm0
    pmovmskb %xmm0, %eax
    MIX %rax
    punpcklbw w(%rip), %xmm1
    psadbw w+16(%rip), %xmm1
    movq %xmm1, %rax
    MIX %rax
    movdqa w(%rip), %xmm5
    pcmpistri $0x18, w+16(%rip), %xmm5
    FLAGS
    MIX %rcx
    ptest w(%rip), %xmm5
    FLAGS 0xc41
    movntdq %xmm5, o(%rip)
    movlps %xmm5, o+16(%rip)
    movhps v(%rip), %xmm5
    pextrq $1, %xmm5, %rax
    MIX %rax
    pinsrd $2, x+4(%rip), %xmm5
    roundps $1, v(%rip), %xmm5
    movd %xmm5, %eax
    MIX %rax
    crc32q w(%rip), %rax
    MIX %rax
    crc32b w(%rip), %eax
    MIX %rax
    pclmulqdq $1, w(%rip), %xmm5
    aesenc w(%rip), %xmm5
    movq %xmm5, %rax
    MIX %rax
    stmxcsr o(%rip)
    ldmxcsr o(%rip)
    sfence
    prefetcht0 o(%rip)
    ret
END sse
FUNCTION avx
    vmovaps v(%rip), %ymm0
    vaddps v(%rip), %ymm0, %ymm1
    vmulpd w(%rip), %ymm1, %ymm2
    vblendvps %ymm1, v(%rip), %ymm0, %ymm3
    vperm2f128 $1, v(%rip), %ymm0, %ymm4
    vextractf128 $1, %ymm4, o(%rip)
    vinsertf128 $0, o(%rip), %ymm1, %ymm5
    vbroadcastss v+4(%rip), %ymm6
    vcmpltps %ymm6, %ymm5, %ymm7
    vmovmskps %ymm7, %eax
    MIX %rax
    OUT 1
    OUT 3
    OUT 5
    vmovdqu m(%rip), %ymm8
    vmaskmovps v(%rip), %ymm8, %ymm9
    OUT 9
    vmaskmovps %ymm6, %ymm8, o(%rip)
    vtestps %ymm8, %ymm9
    FLAGS 0xc41
    vzeroupper
    ret
END avx
FUNCTION avx2
    vmovdqu w(%rip), %ymm0
    vpaddd x(%rip), %ymm0, %ymm1
    vpermd v(%rip), %ymm0, %ymm2
    vpshufb w(%rip), %ymm1, %ymm3
    vpsllvd x(%rip), %ymm1, %ymm4
    vpcmpeqd %ymm15, %ymm15, %ymm15
    vmovdqu x(%rip), %ymm14
    lea v(%rip), %rdx
    vgatherdps %ymm15, (%rdx,%ymm14,4), %ymm5
    vmovdqu m(%rip), %ymm15
    vpgatherdd %ymm15, 0(%rdx,%ymm14,4), %ymm5
    vpbroadcastb w(%rip), %ymm6
    vpsrldq $3, %ymm6, %ymm7
    vpmovzxbw w(%rip), %ymm8
    .irp r, 1, 2, 3, 4, 5, 6, 7, 8
    OUT \r
    .endr
    vpmaskmovd w(%rip), %ymm15, %ymm9
    OUT 9
    vpmovmskb %ymm9, %eax
    MIX %rax
    vzeroall
    ret
END avx2
FUNCTION fma
    vmovups v(%rip), %ymm0
    vmovups v(%rip), %ymm1
    vfmadd132ps v(%rip), %ymm0, %ymm1
    vfmadd213ps v(%rip), %ymm0, %ymm1
    vfnmsub231ps v(%rip), %ymm0, %ymm1
    vfmaddsub213ps v(%rip), %ymm0, %ymm1
    OUT 1
    OUT 1
    vcvtps2ph $0, %xmm1, %xmm2
    vcvtph2ps %xmm2, %xmm3
    OUT 3
    ret
END fma
FUNCTION bmi
    mov w(%rip), %rdx
    andn w+8(%rip), %rdx, %rax
    FLAGS 0xcc1
    MIX %rax
    bextr %rbx, w(%rip), %rax
    MIX %rax
    blsr %rdx, %rax
    FLAGS 0xcc1
    MIX %rax
    blsi w(%rip), %rax
    MIX %rax
    blsmsk w(%rip), %rax
    MIX %rax
    bzhi %rbx, w(%rip), %rax
    MIX %rax
    mulx w+8(%rip), %rax, %rcx
    MIX %rax
    MIX %rcx
    pdep w+16(%rip), %rdx, %rax
    MIX %rax
    pext w+16(%rip), %rdx, %rax
    MIX %rax
    rorx $7, %rdx, %rax
    MIX %rax
    sarx %rbx, w(%rip), %rax
    shlx %rbx, %rax, %rax
    shrx %rbx, %rax, %rax
    MIX %rax
    tzcnt w(%rip), %rax
    FLAGS 0x41
    lzcnt w(%rip), %rax
    FLAGS 0x41
    popcnt w(%rip), %rax
    FLAGS
    MIX %rax
    movbe w(%rip), %rax
    MIX %rax
    adcx %rax, %rdx
    adox %rax, %rdx
    FLAGS
    MIX %rdx
    ret
END bmi
