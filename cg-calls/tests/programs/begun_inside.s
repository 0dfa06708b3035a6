# Instrumentation begins deep inside, ends, and begins again elsewhere: callers are unknown and must be made up.
    .data
start: .quad 0x43540004, 0, 0, 0, 0, 0
stop: .quad 0x43540005, 0, 0, 0, 0, 0
slot: .quad 0
    .text
.macro FUNCTION name
    .globl \name
    .type \name, @function
\name:
.endm
.macro END name
    .size \name, . - \name
.endm
.macro REQUEST which
    lea \which(%rip), %rax
    xor %edx, %edx
    rol $3, %rdi
    rol $13, %rdi
    rol $61, %rdi
    rol $51, %rdi
    xchg %rbx, %rbx
.endm
FUNCTION _start
    call one
    nop
    call four
    mov $60, %eax
    xor %edi, %edi
    syscall
END _start
FUNCTION one
    nop
    call two
    nop
    call four
    ret
END one
FUNCTION two
    nop
    call three
    nop
    nop
    ret
END two
FUNCTION three
    REQUEST start
    nop
    call four
    nop
    ret
END three
FUNCTION four
    inc %rax
    call five
    ret
END four
FUNCTION five
    inc %rax
    ret
END five
