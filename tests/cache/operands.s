# cpu: avx2 bmi2 f16c aes pclmulqdq
# Vector instructions with a memory operand of each size, most of them: MMX, SSE to SSE4.2, AVX, AVX2, BMI.
.include "cache.inc"
    .bss
    .balign 4096
area: .space 65536
    .text
START
    xor %ebx, %ebx
1:  lea area(%rip), %rdi
    add %rbx, %rdi
    # 16 bytes, aligned.
    addps (%rdi), %xmm1
    addpd 48(%rdi), %xmm1
    subps 96(%rdi), %xmm1
    mulpd 144(%rdi), %xmm1
    divps 192(%rdi), %xmm1
    minpd 240(%rdi), %xmm1
    maxps 288(%rdi), %xmm1
    sqrtps 336(%rdi), %xmm1
    sqrtpd 384(%rdi), %xmm1
    andps 432(%rdi), %xmm1
    andnpd 480(%rdi), %xmm1
    orps 528(%rdi), %xmm1
    xorpd 576(%rdi), %xmm1
    unpcklps 624(%rdi), %xmm1
    unpckhpd 672(%rdi), %xmm1
    cvtdq2ps 720(%rdi), %xmm1
    cvtps2dq 768(%rdi), %xmm1
    cvttps2dq 816(%rdi), %xmm1
    cvtpd2ps 864(%rdi), %xmm1
    cvtpd2dq 912(%rdi), %xmm1
    cvttpd2dq 960(%rdi), %xmm1
    rcpps 1008(%rdi), %xmm1
    rsqrtps 1056(%rdi), %xmm1
    addsubps 1104(%rdi), %xmm1
    haddpd 1152(%rdi), %xmm1
    hsubps 1200(%rdi), %xmm1
    paddb 1248(%rdi), %xmm1
    paddq 1296(%rdi), %xmm1
    paddusw 1344(%rdi), %xmm1
    psubd 1392(%rdi), %xmm1
    psubsb 1440(%rdi), %xmm1
    pmullw 1488(%rdi), %xmm1
    pmulhw 1536(%rdi), %xmm1
    pmulhuw 1584(%rdi), %xmm1
    pmuludq 1632(%rdi), %xmm1
    pmaddwd 1680(%rdi), %xmm1
    psadbw 1728(%rdi), %xmm1
    pavgb 1776(%rdi), %xmm1
    pminub 1824(%rdi), %xmm1
    pmaxsw 1872(%rdi), %xmm1
    pand 1920(%rdi), %xmm1
    pandn 1968(%rdi), %xmm1
    por 2016(%rdi), %xmm1
    pxor 2064(%rdi), %xmm1
    pcmpeqb 2112(%rdi), %xmm1
    pcmpgtd 2160(%rdi), %xmm1
    packsswb 2208(%rdi), %xmm1
    packuswb 2256(%rdi), %xmm1
    packssdw 2304(%rdi), %xmm1
    punpcklbw 2352(%rdi), %xmm1
    punpckhwd 2400(%rdi), %xmm1
    punpckldq 2448(%rdi), %xmm1
    punpckhqdq 2496(%rdi), %xmm1
    pshufb 2544(%rdi), %xmm1
    phaddw 2592(%rdi), %xmm1
    phsubd 2640(%rdi), %xmm1
    pmaddubsw 2688(%rdi), %xmm1
    pmulhrsw 2736(%rdi), %xmm1
    psignb 2784(%rdi), %xmm1
    pabsd 2832(%rdi), %xmm1
    pmulld 2880(%rdi), %xmm1
    pmuldq 2928(%rdi), %xmm1
    pminsb 2976(%rdi), %xmm1
    pmaxud 3024(%rdi), %xmm1
    packusdw 3072(%rdi), %xmm1
    pcmpeqq 3120(%rdi), %xmm1
    pcmpgtq 3168(%rdi), %xmm1
    ptest 3216(%rdi), %xmm1
    phminposuw 3264(%rdi), %xmm1
    movshdup 3312(%rdi), %xmm1
    movsldup 3360(%rdi), %xmm1
    movdqa 3408(%rdi), %xmm1
    movaps 3456(%rdi), %xmm1
    lddqu 3504(%rdi), %xmm1
    movntdqa 3552(%rdi), %xmm1
    aesenc 3792(%rdi), %xmm1
    aesdeclast 3840(%rdi), %xmm1
    aesimc 3888(%rdi), %xmm1
    shufps $1, 3936(%rdi), %xmm1
    pshufd $1, 3984(%rdi), %xmm1
    pshufhw $1, 4032(%rdi), %xmm1
    palignr $1, 4080(%rdi), %xmm1
    blendps $1, 4128(%rdi), %xmm1
    pblendw $1, 4176(%rdi), %xmm1
    dpps $1, 4224(%rdi), %xmm1
    mpsadbw $1, 4272(%rdi), %xmm1
    pcmpistri $1, 4368(%rdi), %xmm1
    pcmpestrm $1, 4416(%rdi), %xmm1
    pclmulqdq $1, 4464(%rdi), %xmm1
    aeskeygenassist $1, 4512(%rdi), %xmm1
    pblendvb %xmm0, 4560(%rdi), %xmm1
    blendvps %xmm0, 4608(%rdi), %xmm1
    # Less than 16.
    addss 4659(%rdi), %xmm1
    addsd 4706(%rdi), %xmm1
    mulss 4753(%rdi), %xmm1
    divsd 4800(%rdi), %xmm1
    minss 4847(%rdi), %xmm1
    maxsd 4894(%rdi), %xmm1
    sqrtss 4941(%rdi), %xmm1
    sqrtsd 4988(%rdi), %xmm1
    cvtss2sd 5035(%rdi), %xmm1
    cvtsd2ss 5082(%rdi), %xmm1
    ucomiss 5129(%rdi), %xmm1
    comisd 5176(%rdi), %xmm1
    rcpss 5223(%rdi), %xmm1
    movss 5270(%rdi), %xmm1
    movsd 5317(%rdi), %xmm1
    movlps 5364(%rdi), %xmm1
    movhpd 5411(%rdi), %xmm1
    movddup 5458(%rdi), %xmm1
    movq 5505(%rdi), %xmm1
    movd 5552(%rdi), %xmm1
    cvtdq2pd 5646(%rdi), %xmm1
    pmovzxbw 5693(%rdi), %xmm1
    pmovsxwd 5740(%rdi), %xmm1
    pmovzxdq 5787(%rdi), %xmm1
    pmovzxbd 5834(%rdi), %xmm1
    pmovsxbq 5881(%rdi), %xmm1
    pmovzxwq 5928(%rdi), %xmm1
    cvtsi2ss 5975(%rdi), %xmm1
    cvtsi2sd 6022(%rdi), %xmm1
    insertps $1, 6069(%rdi), %xmm1
    roundss $1, 6116(%rdi), %xmm1
    roundsd $1, 6163(%rdi), %xmm1
    pinsrb $1, 6210(%rdi), %xmm1
    pinsrd $1, 6257(%rdi), %xmm1
    pinsrq $1, 6304(%rdi), %xmm1
    pinsrw $1, 6351(%rdi), %xmm1
    cvtss2si 6398(%rdi), %rax
    cvttsd2si 6445(%rdi), %rax
    cvtsd2si 6492(%rdi), %rax
    paddb 6537(%rdi), %mm1
    pmullw 6582(%rdi), %mm1
    psubusb 6627(%rdi), %mm1
    pcmpeqd 6672(%rdi), %mm1
    punpckhbw 6717(%rdi), %mm1
    packsswb 6762(%rdi), %mm1
    pshufb 6807(%rdi), %mm1
    psllq 6852(%rdi), %mm1
    pavgw 6897(%rdi), %mm1
    psadbw 6942(%rdi), %mm1
    emms
    # Stores.
    movups %xmm1, 6989(%rdi)
    movdqu %xmm1, 7036(%rdi)
    movss %xmm1, 7083(%rdi)
    movsd %xmm1, 7130(%rdi)
    movlpd %xmm1, 7177(%rdi)
    movhps %xmm1, 7224(%rdi)
    movd %xmm1, 7271(%rdi)
    movq %xmm1, 7318(%rdi)
    lea area+16384(%rip), %rdi
    add %rbx, %rdi
    movaps %xmm1, (%rdi)
    movntps %xmm1, 48(%rdi)
    movntdq %xmm1, 96(%rdi)
    movdqa %xmm1, 144(%rdi)
    pextrb $1, %xmm1, 195(%rdi)
    pextrd $1, %xmm1, 242(%rdi)
    pextrq $1, %xmm1, 289(%rdi)
    extractps $1, %xmm1, 336(%rdi)
    pextrw $1, %xmm1, 383(%rdi)
    # AVX, 32 bytes and less.
    vaddps 432(%rdi), %ymm1, %ymm2
    vmulpd 477(%rdi), %ymm1, %ymm2
    vandps 522(%rdi), %ymm1, %ymm2
    vunpcklpd 567(%rdi), %ymm1, %ymm2
    vpaddb 612(%rdi), %ymm1, %ymm2
    vpmulld 657(%rdi), %ymm1, %ymm2
    vpshufb 702(%rdi), %ymm1, %ymm2
    vpsrlvd 747(%rdi), %ymm1, %ymm2
    vpsllvq 792(%rdi), %ymm1, %ymm2
    vpunpckhwd 837(%rdi), %ymm1, %ymm2
    vhaddps 882(%rdi), %ymm1, %ymm2
    vpermd 927(%rdi), %ymm1, %ymm2
    vpermps 972(%rdi), %ymm1, %ymm2
    vpermilps 1017(%rdi), %ymm1, %ymm2
    vaddsubpd 1062(%rdi), %ymm1, %ymm2
    vpackuswb 1107(%rdi), %ymm1, %ymm2
    vpcmpgtb 1152(%rdi), %ymm1, %ymm2
    vpmaddubsw 1197(%rdi), %ymm1, %ymm2
    vaddps 1242(%rdi), %xmm1, %xmm2
    vmulpd 1287(%rdi), %xmm1, %xmm2
    vpaddw 1332(%rdi), %xmm1, %xmm2
    vaddss 1377(%rdi), %xmm1, %xmm2
    vmulsd 1422(%rdi), %xmm1, %xmm2
    vmovlps 1557(%rdi), %xmm1, %xmm2
    vmovhpd 1602(%rdi), %xmm1, %xmm2
    vcvtss2sd 1647(%rdi), %xmm1, %xmm2
    vmovups 1692(%rdi), %ymm2
    vmovdqu 1737(%rdi), %ymm2
    vsqrtps 1782(%rdi), %ymm2
    vcvtdq2ps 1827(%rdi), %ymm2
    vcvttps2dq 1872(%rdi), %ymm2
    vlddqu 1917(%rdi), %ymm2
    vmovshdup 1962(%rdi), %ymm2
    vptest 2052(%rdi), %ymm2
    vcvtdq2pd 2142(%rdi), %ymm2
    vbroadcastss 2187(%rdi), %ymm2
    vbroadcastsd 2232(%rdi), %ymm2
    vbroadcastf128 2277(%rdi), %ymm2
    vbroadcasti128 2322(%rdi), %ymm2
    vpbroadcastb 2367(%rdi), %ymm2
    vpbroadcastw 2412(%rdi), %ymm2
    vpbroadcastd 2457(%rdi), %ymm2
    vpbroadcastq 2502(%rdi), %ymm2
    vpmovzxbw 2547(%rdi), %ymm2
    vpmovsxbd 2592(%rdi), %ymm2
    vpmovzxbq 2637(%rdi), %ymm2
    vpmovsxwd 2682(%rdi), %ymm2
    vpmovzxwq 2727(%rdi), %ymm2
    vpmovsxdq 2772(%rdi), %ymm2
    vcvtph2ps 2817(%rdi), %ymm2
    vcvtpd2psy 2862(%rdi), %xmm2
    vcvttpd2dqy 2907(%rdi), %xmm2
    vpermq $1, 3062(%rdi), %ymm2
    vpermpd $1, 3107(%rdi), %ymm2
    vpshufd $1, 3152(%rdi), %ymm2
    vpermilpd $1, 3197(%rdi), %ymm2
    vroundps $1, 3242(%rdi), %ymm2
    vinsertf128 $1, 3287(%rdi), %ymm1, %ymm2
    vinserti128 $1, 3332(%rdi), %ymm1, %ymm2
    vblendps $1, 3467(%rdi), %ymm1, %ymm2
    vpblendd $1, 3512(%rdi), %ymm1, %ymm2
    vpalignr $1, 3557(%rdi), %ymm1, %ymm2
    vshufpd $1, 3602(%rdi), %ymm1, %ymm2
    vcmpps $1, 3647(%rdi), %ymm1, %ymm2
    vdpps $1, 3692(%rdi), %ymm1, %ymm2
    vmpsadbw $1, 3737(%rdi), %ymm1, %ymm2
    vpblendvb %ymm3, 3877(%rdi), %ymm1, %ymm2
    vextractf128 $1, %ymm1, 3922(%rdi)
    vcvtps2ph $0, %ymm1, 3968(%rdi)
    vcvtps2ph $0, %xmm1, 4018(%rdi)
    vpextrd $2, %xmm1, 4068(%rdi)
    vldmxcsr mxcsr(%rip)
    vstmxcsr 4117(%rdi)
    vmovntps %xmm1, aligned(%rip)
    vmovntdq %ymm1, aligned(%rip)
    vmovntdqa aligned(%rip), %ymm1
    andn 4182(%rdi), %rax, %rcx
    pdep 4227(%rdi), %rax, %rcx
    pext 4272(%rdi), %rax, %rcx
    shlx %eax, 4317(%rdi), %ecx
    sarx %eax, 4362(%rdi), %ecx
    bzhi %eax, 4407(%rdi), %ecx
    bextr %eax, 4452(%rdi), %ecx
    blsr 4497(%rdi), %rcx
    blsi 4542(%rdi), %rcx
    blsmsk 4587(%rdi), %rcx
    tzcnt 4632(%rdi), %rcx
    lzcnt 4677(%rdi), %rcx
    bsf 4722(%rdi), %rcx
    mov 4767(%rdi), %eax
    rorx $3, 4767(%rdi), %eax
    imul $3, 4812(%rdi), %eax
    imul 4852(%rdi), %rax
    mulx 4862(%rdi), %rax, %rcx
    mulq 4907(%rdi)
    adcx 4952(%rdi), %rax
    adox 4992(%rdi), %rax
    movsxd 5037(%rdi), %rax
    crc32q 5077(%rdi), %rax
    bswap %eax
    movnti %eax, 5117(%rdi)
    add $7, %ebx
    and $-16, %ebx
    add $16, %ebx
    cmp $256, %ebx
    jb 1b
    EXIT
    .data
    .balign 64
aligned: .space 64
mxcsr: .long 0x1f80
