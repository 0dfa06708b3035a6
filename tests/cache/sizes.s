# cpu: avx2
# Every size of access from 1 to 32 bytes: loads, stores and modifications at every offset from a line of 64 bytes.
.include "cache.inc"
    .bss
    .balign 64
area: .space 4096
    .text
START
    lea area(%rip), %rsi
    xor %ebx, %ebx
1:  lea (%rsi,%rbx), %rdi
    mov (%rdi), %al
    mov %al, 64(%rdi)
    incb 128(%rdi)
    mov 192(%rdi), %ax
    mov %ax, 256(%rdi)
    addw $3, 320(%rdi)
    mov 384(%rdi), %eax
    mov %eax, 448(%rdi)
    subl %eax, 512(%rdi)
    mov 576(%rdi), %rax
    mov %rax, 640(%rdi)
    xorq %rax, 704(%rdi)
    movss 768(%rdi), %xmm0
    movss %xmm0, 832(%rdi)
    movsd 896(%rdi), %xmm0
    movsd %xmm0, 960(%rdi)
    movups 1024(%rdi), %xmm0
    movups %xmm0, 1088(%rdi)
    vmovups 1152(%rdi), %ymm0
    vmovups %ymm0, 1216(%rdi)
    fldt 1280(%rdi)
    fstpt 1344(%rdi)
    flds 1408(%rdi)
    fstps 1472(%rdi)
    fldl 1536(%rdi)
    fstpl 1600(%rdi)
    fildll 1664(%rdi)
    fistpll 1728(%rdi)
    filds 1792(%rdi)
    fistps 1856(%rdi)
    movzbl 1920(%rdi), %eax
    movswq 1984(%rdi), %rax
    movslq 2048(%rdi), %rax
    cmpb $1, 2112(%rdi)
    testq %rax, 2176(%rdi)
    cmovz 2240(%rdi), %rcx
    setnz 2304(%rdi)
    movbe 2368(%rdi), %ecx
    movbe %rcx, 2432(%rdi)
    crc32w 2496(%rdi), %eax
    popcntq 2560(%rdi), %rax
    pinsrb $3, 2624(%rdi), %xmm1
    pextrw $2, %xmm1, 2688(%rdi)
    movhps 2752(%rdi), %xmm1
    movlps %xmm1, 2816(%rdi)
    vbroadcastss 2880(%rdi), %ymm2
    vinsertf128 $1, 2944(%rdi), %ymm2, %ymm2
    vextracti128 $1, %ymm2, 3008(%rdi)
    pmovzxbd 3072(%rdi), %xmm3
    movq %mm0, 3136(%rdi)
    movd 3200(%rdi), %mm1
    emms
    cvtsi2sdl 3264(%rdi), %xmm4
    vaddpd 3328(%rdi), %ymm2, %ymm5
    ldmxcsr something_mxcsr(%rip)
    stmxcsr 3392(%rdi)
    movnti %rax, 3456(%rdi)
    prefetcht0 3520(%rdi)
    clflush 3584(%rdi)
    lea 3648(%rdi), %rax
    nopw 3712(%rdi)
    inc %ebx
    cmp $64, %ebx
    jne 1b
    EXIT
    .data
something_mxcsr: .long 0x1f80
