# Conditional branches: all conditions, patterns that a predictor learns and ones that it cannot, LOOP and JRCXZ.
.include "cache.inc"
    .text
START
    mov $1, %r8d
    mov $400, %ebx
again:
    imul $1103515245, %r8d, %r8d
    add $12345, %r8d
    mov %r8d, %ecx
    shr $16, %ecx
    .irp cc, o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g
    rol $1, %cl
    cmp $0x5a, %cl
    j\cc 2f
    inc %eax
2:  mov %ebx, %edx
    and $3, %edx
    cmp $2, %edx
    j\cc 3f
    inc %eax
3:
    .endr
    jmp 4f
    .space 200, 0xcc
4:  and $3, %ecx
    inc %ecx
5:  inc %eax
    loop 5b
    and $7, %r8d
    mov %r8d, %ecx
    jrcxz 6f
7:  dec %edx
    loopne 7b
6:  mov $3, %ecx
8:  test %eax, %eax
    loope 8b
    jecxz 9f
    inc %eax
9:  .rept 3
    test $1, %bl
    jz 1f
    nop
1:
    .endr
    dec %ebx
    jnz again
    EXIT
