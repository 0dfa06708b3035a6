# String instructions but CMPS (which the reference lacks) without REP, both directions, all sizes, with segment and 32-bit address overrides.
.include "rt.inc"
    .data
src: .quad 0x1122334455667788, 0x99aabbccddeeff00, 3, 4, 5, 6, 7, 8
dst: .quad 0, 0, 0, 0, 0, 0, 0, 0
    .text
FUNCTION _start
    mov $158, %eax
    mov $0x1002, %edi
    xor %esi, %esi
    syscall
    lea src(%rip), %rsi
    lea dst(%rip), %rdi
    .irp insn, movsb, movsw, movsl, movsq, stosb, stosw, stosl, stosq, movsb
    \insn
    .endr
    .irp insn, lodsb, lodsw, lodsl, lodsq
    \insn
    MIX %rax
    .endr
    lea src(%rip), %rsi
    lea dst(%rip), %rdi
    .irp insn, scasb, scasw, scasl, scasq
    \insn
    FLAGS 0xcd5
    .endr
    std
    .irp insn, movsb, movsw, movsl, stosb, stosl, lodsb, lodsw, scasw
    \insn
    FLAGS 0x400
    .endr
    MIX %rax
    cld
    lea src(%rip), %rsi
    lea dst(%rip), %rdi
    lodsl (%esi)
    MIX %rax
    stosl %eax, (%edi)
    movsw (%esi), (%edi)
    lea src(%rip), %rax
    sub %rax, %rsi
    MIX %rsi
    lea dst(%rip), %rdx
    sub %rdx, %rdi
    MIX %rdi
    mov $8, %ecx
1:  mov (%rdx), %rax
    MIX %rax
    add $8, %rdx
    dec %ecx
    jnz 1b
    jmp finish
END _start
