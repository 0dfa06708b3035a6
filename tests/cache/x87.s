# x87 environments and states: larger than a line, so shortened to the smallest line of the caches.
.include "cache.inc"
    .bss
    .balign 4096
area: .space 8192
    .text
START
    fninit
    lea area(%rip), %rdi
    mov $20, %ebx
1:  fnstenv (%rdi)
    fldenv (%rdi)
    fnstcw 200(%rdi)
    fldcw 200(%rdi)
    fnstsw 206(%rdi)
    fldpi
    fsts 263(%rdi)
    fstpl 327(%rdi)
    fldz
    fstpt 503(%rdi)
    fldt 503(%rdi)
    fadds 263(%rdi)
    fmull 327(%rdi)
    fiadds 206(%rdi)
    fcoms 263(%rdi)
    fistl 600(%rdi)
    fisttpll 640(%rdi)
    fldz
    fisttps 700(%rdi)
    fnsave 1024(%rdi)
    frstor 1024(%rdi)
    add $72, %rdi
    dec %ebx
    jnz 1b
    EXIT
