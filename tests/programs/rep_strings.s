# String instructions with REP: all sizes, count 0, ended by count, by condition, by condition on the last element, backwards.
.include "rt.inc"
    .data
    .balign 64
src: .ascii "The quick brown fox jumps over the lazy dog, and then some more text follows."
     .space 51
src_end:
dst: .space 256
zeros: .space 256
    .text
FUNCTION _start
    .irp n, 0, 1, 2, 7, 8, 63
    mov $\n, %ebx
    call moves
    call stores
    .endr
    call scans
    call compares
    call backwards
    call short_loop
    jmp finish
END _start
FUNCTION sum
    lea dst(%rip), %rdx
    mov $32, %ecx
1:  mov (%rdx), %rax
    MIX %rax
    add $8, %rdx
    dec %ecx
    jnz 1b
    ret
END sum
.macro AT n:req
    lea src(%rip), %rsi
    lea dst(%rip), %rdi
    mov \n, %rcx
.endm
.macro LEFT
    MIX %rcx
    lea src(%rip), %rax
    sub %rax, %rsi
    MIX %rsi
    lea dst(%rip), %rax
    sub %rax, %rdi
    MIX %rdi
.endm
FUNCTION moves
    AT %rbx
    rep movsb
    LEFT
    mov %ebx, %r12d
    shr $1, %r12d
    AT %r12
    rep movsw
    LEFT
    shr $1, %r12d
    AT %r12
    stc
    rep movsl
    FLAGS 0x401
    LEFT
    shr $1, %r12d
    AT %r12
    rep movsq
    LEFT
    call sum
    ret
END moves
FUNCTION stores
    movabs $0x1122334455667788, %rax
    AT %rbx
    rep stosb
    AT %rbx
    rep stosw
    call sum
    movabs $0x9922334455667788, %rax
    AT %rbx
    rep stosl
    mov %rbx, %rcx
    and $15, %ecx
    rep stosq
    call sum
    ret
END stores
.macro SCAN insn:req, n:req, value:req
    lea src(%rip), %rdi
    mov $\n, %ecx
    mov $\value, %eax
    cmp %edi, %edi
    \insn
    FLAGS 0xcd5
    MIX %rcx
    lea src(%rip), %rax
    sub %rax, %rdi
    MIX %rdi
.endm
FUNCTION scans
    SCAN "repne scasb", 77, 'q'
    SCAN "repne scasb", 77, 'Z'
    SCAN "repne scasb", 5, 'q'
    SCAN "repne scasb", 4, 'q'
    SCAN "repne scasb", 0, 'q'
    SCAN "repe scasb", 9, 'T'
    SCAN "repe scasb", 1, 'T'
    SCAN "repe scasb", 1, 'x'
    SCAN "repe scasb", 0, 'x'
    SCAN "repne scasw", 20, 0x6320
    SCAN "repne scasl", 16, 0x206b6369
    SCAN "repne scasq", 16, 0
    SCAN "repe scasw", 20, 0x6854
    lea zeros(%rip), %rdi
    xor %eax, %eax
    mov $64, %ecx
    repe scasl
    FLAGS 0xcd5
    MIX %rcx
    mov $17, %ecx
    lea zeros(%rip), %rdi
    repe scasq
    FLAGS 0xcd5
    MIX %rcx
    ret
END scans
FUNCTION compares
    AT $128
    rep movsb
    movb $'!', dst+40(%rip)
    .irp insn, cmpsb, cmpsw, cmpsl, cmpsq
    .irp n, 0, 1, 5, 8, 10, 11, 20, 21
    AT $\n
    cmp %ecx, %ebx
    repe \insn
    FLAGS 0xcd5
    LEFT
    .endr
    .endr
    AT $41
    repe cmpsb
    FLAGS
    LEFT
    ret
END compares
FUNCTION backwards
    std
    lea src+77(%rip), %rsi
    lea dst+120(%rip), %rdi
    mov $50, %ecx
    rep movsb
    LEFT
    lea src+72(%rip), %rsi
    lea dst+248(%rip), %rdi
    mov $6, %ecx
    rep movsq
    LEFT
    lea dst+200(%rip), %rdi
    mov $0x3344, %eax
    mov $9, %ecx
    rep stosw
    FLAGS 0x400
    lea src+60(%rip), %rdi
    mov $'q', %al
    mov $61, %ecx
    repne scasb
    FLAGS
    LEFT
    cld
    lea dst(%rip), %rsi
    lea dst+8(%rip), %rdi
    mov $100, %ecx
    rep movsb
    call sum
    ret
END backwards
FUNCTION short_loop
    mov $300, %ebx
1:  mov %ebx, %ecx
    and $3, %ecx
    lea src(%rip), %rsi
    lea dst(%rip), %rdi
    cmp $150, %ebx
    rep movsb
    jb 2f
    inc %r15
2:  dec %ebx
    jnz 1b
    ret
END short_loop
