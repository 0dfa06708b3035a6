# All sixteen conditions, near and short, forwards and backwards, taken and not, with SETcc and CMOVcc beside them.
.include "rt.inc"
    .data
values: .quad 0, 1, -1, 0x7fffffffffffffff, 0x8000000000000000, 2, 0x80, 0xff
    .text
.macro BOTH cc:req
    cmp %rdx, %rax
    j\cc 1f
    add $3, %r15
1:  cmp %rdx, %rax
    set\cc %cl
    mov $5, %esi
    cmov\cc %rdx, %rsi
    MIX %rcx
    MIX %rsi
    cmp %edx, %eax
    .byte 0x0f
    .byte 0x80 + \@ % 16
    .long 2f - . - 4
    rol $1, %r15
2:  test %dl, %al
    j\cc 3f
    inc %r15
3:  add %dx, %ax
    jn\cc 4f
    MIX %rax
4:
.endm
FUNCTION _start
    xor %r12d, %r12d
1:  xor %r13d, %r13d
2:  lea values(%rip), %rbx
    xor %ecx, %ecx
    mov (%rbx,%r12,8), %rax
    mov (%rbx,%r13,8), %rdx
    call conditions
    inc %r13
    cmp $8, %r13
    jne 2b
    inc %r12
    cmp $8, %r12
    jl 1b
    jmp finish
END _start
FUNCTION conditions
    .irp cc, o, b, z, be, s, p, l, le
    BOTH \cc
    .endr
    ret
END conditions
