# FXSAVE and FXRSTOR: x87, MXCSR and sixteen registers, one access each.
.include "cache.inc"
    .bss
    .balign 4096
area: .space 16384
    .text
START
    lea area(%rip), %rdi
    mov $20, %ebx
1:  fxsave (%rdi)
    fxrstor (%rdi)
    fxsave64 1040(%rdi)
    movl $0x1f80, 1064(%rdi)
    fxrstor64 1040(%rdi)
    add $528, %rdi
    dec %ebx
    jnz 1b
    EXIT
