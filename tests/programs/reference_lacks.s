# oracle: steps
# cpu: bmi2 fma
# What the reference refuses or gets wrong (it runs REP LODS once and leaves rcx: S17); counts come from single-stepping.
.include "rt.inc"
    .data
src: .quad 0x1122334455667788, 0x99aabbccddeeff00, 3, 4, 5, 6, 7, 8
dst: .quad 0, 0, 0, 0, 0, 0, 0, 0
xlat: .ascii "0123456789abcdef"
ptr: .long target, 0
sel: .short 0, 0
    .text
FUNCTION _start
    call lods
    call odd_prefixes
    call x87_stack
    call compares
    call narrow
    call others
    call branches
    jmp finish
END _start
FUNCTION lods
    .irp insn, lodsb, lodsw, lodsl, lodsq
    .irp n, 0, 1, 5
    lea src(%rip), %rsi
    mov $\n, %ecx
    rep \insn
    MIX %rax
    MIX %rcx
    lea src(%rip), %rdx
    sub %rdx, %rsi
    MIX %rsi
    .endr
    .endr
    ret
END lods
FUNCTION odd_prefixes
    lea dst(%rip), %rdi
    lea src(%rip), %rsi
    mov $5, %ecx
    mov $0x55667788, %eax
    repne stosl
    mov $2, %ecx
    repne movsq
    MIX %rcx
    lea src(%rip), %rsi
    lea dst(%rip), %rdi
    cmpsb
    FLAGS
    .byte 0x66, 0xf3, 0x48
    movsq
    std
    cmpsb
    FLAGS
    cld
    mov $3, %ecx
    .byte 0x2e, 0x66, 0xf3
    movsb
    MIX %rcx
    mov dst(%rip), %rax
    MIX %rax
    ret
END odd_prefixes
FUNCTION x87_stack
    fninit
    fld1
    fldz
    fincstp
    fdecstp
    fnstsw %ax
    MIX %rax
    fcompp
    fldpi
    fbstp dst(%rip)
    mov dst(%rip), %rax
    MIX %rax
    ret
END x87_stack
FUNCTION compares
    .irp insn, cmpsb, cmpsw, cmpsl, cmpsq
    .irp n, 0, 1, 2, 3, 20
    lea src(%rip), %rsi
    lea src+16(%rip), %rdi
    mov $\n, %ecx
    test %esi, %esi
    repne \insn
    FLAGS
    MIX %rcx
    \insn
    FLAGS 0xcd5
    .endr
    .endr
    ret
END compares
FUNCTION others
    movups src(%rip), %xmm0
    movups src+4(%rip), %xmm1
    vfmadd231ss src+8(%rip), %xmm0, %xmm1
    movhlps %xmm1, %xmm2
    movq %xmm2, %rax
    MIX %rax
    rorx $7, src(%rip), %rax
    MIX %rax
    xor %ecx, %ecx
    cmp $0x40000000, %esi
    rcr %cl, %eax
    FLAGS
    mov $158, %eax
    mov $0x1002, %edi
    xor %esi, %esi
    syscall
    lea src(%rip), %rsi
    lea dst(%rip), %rdi
    fs lodsb
    MIX %rax
    fs movsb
    .byte 0x67, 0x66, 0x8d, 0x04, 0x0b
    MIX %rax
    mov $20, %edx
1:  mov %edx, %eax
    and $15, %eax
    lea xlat(%rip), %rbx
    xlatb
    MIX %rax
    dec %edx
    jnz 1b
    ret
END others
FUNCTION branches
    # Prefixes that branches ignore or use as hints.
    mov $10, %ecx
1:  xor %eax, %eax
    .byte 0x2e
    jz 2f
    ud2
2:  .byte 0x3e
    jnz 3f
    .byte 0x40
    jmp 4f
3:  ud2
4:  .byte 0xf2
    call target
    .byte 0x48
    ret_site = . + 2
    jmp 5f
5:  dec %ecx
    .byte 0xf2
    jnz 1b
    ret
END branches
FUNCTION target
    add $5, %r15
    .byte 0xf2
    ret
END target
FUNCTION narrow
    lea src(%rip), %rsi
    lea dst+16(%rip), %rdi
    movabs $0xffffffff00000009, %rcx
    rep movsl (%esi), (%edi)
    MIX %rcx
    MIX %rsi
    MIX %rdi
    lea dst+3(%rip), %rdi
    movabs $0x100000000, %rcx
    addr32 rep stosb
    MIX %rcx
    lea src(%rip), %rdi
    mov $30, %ecx
    mov $'b', %al
    addr32 repne scasb
    MIX %rcx
    MIX %rsi
    MIX %rdi
    mov dst(%rip), %rax
    MIX %rax
    ret
END narrow
