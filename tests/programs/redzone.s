# Values below the stack pointer live across branches, indirect jumps, REP instructions and loops: nothing may be pushed there.
.include "rt.inc"
    .text
FUNCTION _start
    mov $200, %ebx
1:  call leaf
    MIX %rax
    dec %ebx
    jnz 1b
    jmp finish
END _start
FUNCTION leaf
    .irp i, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128
    lea \i(%rbx), %rax
    mov %rax, -\i(%rsp)
    .endr
    test $1, %bl
    jz 1f
    lea 1f(%rip), %rdx
    jmp *%rdx
1:  lea -128(%rsp), %rsi
    lea -64(%rsp), %rdi
    mov $3, %ecx
    rep movsq
    mov $5, %ecx
2:  loop 2b
    cmp $100, %ebx
    ja 3f
    addq $1, -8(%rsp)
3:  xor %eax, %eax
    .irp i, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128
    rol $3, %rax
    add -\i(%rsp), %rax
    .endr
    mov %rsp, %rcx
    mov $0, %rdx
    cmp %rsp, %rcx
    ret
END leaf
