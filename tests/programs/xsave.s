# cpu: xsave avx2
# FXSAVE, XSAVE and their restoring counterparts, with partial masks.
.include "rt.inc"
    .data
    .balign 64
area: .space 1024
fx:   .space 512
v: .quad 1, 2, 3, 4
    .text
FUNCTION _start
    mov $10, %ebx
1:  fninit
    fldpi
    vmovdqu v(%rip), %ymm3
    movq %rbx, %xmm5
    mov $7, %eax
    xor %edx, %edx
    xsave area(%rip)
    fxsave fx(%rip)
    vzeroall
    fninit
    mov $6, %eax
    xrstor area(%rip)
    vmovdqu %ymm3, v(%rip)
    mov v+24(%rip), %rax
    MIX %rax
    movq %xmm5, %rax
    MIX %rax
    mov $1, %eax
    xrstor area(%rip)
    fstpl v+8(%rip)
    mov v+8(%rip), %rax
    MIX %rax
    pxor %xmm5, %xmm5
    fxrstor64 fx(%rip)
    movq %xmm5, %rax
    MIX %rax
    fstp %st(0)
    mov $4, %eax
    xrstor area(%rip)
    movl $0, area+512(%rip)
    mov $7, %eax
    xrstor area(%rip)
    movq %xmm5, %rax
    MIX %rax
    mov area+512(%rip), %rax
    MIX %rax
    dec %ebx
    jnz 1b
    jmp finish
END _start
