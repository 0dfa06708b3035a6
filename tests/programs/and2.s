# The `a && b` of reference S1: chasing translators book phantom executions of the second comparison.
.include "rt.inc"
    .text
FUNCTION _start
    mov $1000, %ecx
    xor %ebx, %ebx
1:  mov %ecx, %eax
    and $1, %eax
    cmp $1, %eax
    jne 2f
    cmp $500, %ecx
    jl 2f
    inc %ebx
2:  dec %ecx
    jnz 1b
    mov %rbx, %r15
    jmp finish
END _start
