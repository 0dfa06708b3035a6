# cpu: avx2
# Mask moves: each enabled element is an access.
.include "cache.inc"
    .data
    .balign 32
m: .long -1, 0, 0x80000000, 0x7fffffff, 0, -1, 1, -1
   .long 0, 0, 0, 0, 0, 0, 0, 0
   .long -1, -1, -1, -1, -1, -1, -1, -1
   .long 0, 0, 0, 0, -1, -1, 0, 0
    .bss
    .balign 4096
area: .space 16384
    .text
START
    lea area(%rip), %rdi
    mov $50, %ebx
1:  mov %ebx, %eax
    and $3, %eax
    shl $5, %eax
    lea m(%rip), %rsi
    vmovdqu (%rsi,%rax), %ymm1
    vmaskmovps 2(%rdi), %ymm1, %ymm2
    vmaskmovpd 40(%rdi), %ymm1, %ymm2
    vpmaskmovd 64(%rdi), %xmm1, %xmm2
    vpmaskmovq 100(%rdi), %xmm1, %xmm2
    vmaskmovps %ymm2, %ymm1, 4130(%rdi)
    vmaskmovpd %xmm2, %xmm1, 4160(%rdi)
    vpmaskmovd %ymm2, %ymm1, 4250(%rdi)
    vpmaskmovq %ymm2, %ymm1, 4300(%rdi)
    add $72, %rdi
    dec %ebx
    jnz 1b
    EXIT
