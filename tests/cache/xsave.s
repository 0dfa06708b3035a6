# cpu: xsave avx2
# XSAVE and XRSTOR of x87, SSE and AVX at once.
.include "cache.inc"
    .bss
    .balign 4096
area: .space 65536
    .text
START
    lea area(%rip), %rdi
    xor %edx, %edx
    mov $24, %ebx
1:  vpcmpeqd %ymm1, %ymm1, %ymm1
    fldz
    mov $7, %eax
    xsave (%rdi)
    xsave64 1024(%rdi)
    fninit
    vzeroall
    xrstor (%rdi)
    fstp %st(0)
    xrstor 1024(%rdi)
    fstp %st(0)
    add $1984, %rdi
    dec %ebx
    jnz 1b
    EXIT
