# Code larger than every I1, run round and round, with instructions of all lengths and across lines, and blocks that are
# reached out of order.
.include "cache.inc"
    .text
START
    mov $12, %ebx
1:  .rept 600
    inc %eax
    lea 0x12345678(%rax,%rcx,4), %rdx
    movabs $0x123456789abcdef0, %r8
    nopw 0x11223344(%rax,%rax)
    test %al, %al
    .byte 0x2e, 0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0
    add $1, %r9
    .endr
    mov $50, %ecx
2:  call f1
    call f3
    call f2
    dec %ecx
    jnz 2b
    dec %ebx
    jnz 1b
    EXIT
    .balign 64
    .space 61, 0x90
FUNCTION f1
    add $1, %eax
    ret
END f1
    .space 4096, 0xcc
FUNCTION f2
    jmp 1f
    .space 123, 0xcc
1:  nop
    ret
END f2
    .space 8192, 0xcc
FUNCTION f3
    mov $3, %edx
1:  dec %edx
    jnz 1b
    ret
END f3
