# High byte registers, 16-bit operands, sign and zero extensions, multiplications, divisions, bit scans, rotates through carry.
.include "rt.inc"
    .data
k: .quad 0x8877665544332211
    .text
FUNCTION _start
    mov $0x9e3779b97f4a7c15, %rbx
    mov $100, %r12d
1:  mov %rbx, %rax
    mov %rbx, %rcx
    add %ah, %bh
    mov %ch, %dl
    xchg %dh, %al
    sub %bl, %ch
    FLAGS 0xcd5
    mov $0x77, %ah
    movzbl %ah, %esi
    movsbl %bh, %edi
    MIX %rsi
    MIX %rdi
    cmp %ch, %dh
    setg %ah
    and $0x7f, %dh
    orb $1, k(%rip)
    add k+1(%rip), %ch
    mov %bh, k+3(%rip)
    add %ax, %bx
    adc $0x1234, %cx
    sub $-3, %dx
    imul %cx, %bx
    imul $0x101, %bx, %dx
    inc %cx
    neg %bx
    FLAGS 0xcd5
    shl $3, %bx
    rcl $2, %cx
    ror %cl, %dx
    MIX %rbx
    MIX %rcx
    MIX %rdx
    movw $0x5555, k+4(%rip)
    add %dx, k+2(%rip)
    movswl k(%rip), %esi
    movslq k(%rip), %rdi
    cbtw
    cwtl
    cltq
    cqto
    MIX %rax
    MIX %rdx
    cwtd
    cltd
    MIX %rdx
    mov k(%rip), %rax
    mulq k(%rip)
    MIX %rdx
    imulb k+1(%rip)
    MIX %rax
    xor %edx, %edx
    mov %r12d, %esi
    mov %rbx, %rax
    div %rsi
    MIX %rax
    MIX %rdx
    mov $-1000, %eax
    cltd
    idiv %esi
    MIX %rax
    mov $1000, %ax
    mov $7, %dl
    div %dl
    MIX %rax
    bsf %rbx, %rax
    bsr %r12d, %edx
    MIX %rax
    MIX %rdx
    bswap %rbx
    shld $7, %rax, %rbx
    shrd %cl, %rbx, k(%rip)
    bts %r12, %rbx
    FLAGS 1
    xchg %ax, %bx
    movnti %rbx, k(%rip)
    add $0x6a09e667, %rbx
    dec %r12d
    jnz 1b
    jmp finish
END _start
