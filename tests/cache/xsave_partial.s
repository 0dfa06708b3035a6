# cpu: xsave avx2
# XSAVE and XRSTOR of some of x87, SSE and AVX. The reference books the x87 area and MXCSR even where they are not asked for.
# differs: Dr D1mr DLmr Dw D1mw DLmw
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
    mov %ebx, %eax
    and $7, %eax
    xsave (%rdi)
    mov $7, %eax
    xsave (%rdi)
    mov %ebx, %eax
    and $7, %eax
    xsave64 1024(%rdi)
    mov $7, %eax
    xrstor (%rdi)
    mov %ebx, %eax
    and $7, %eax
    xrstor (%rdi)
    fninit
    add $1984, %rdi
    dec %ebx
    jnz 1b
    EXIT
