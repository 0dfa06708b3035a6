# Indirect jumps: through registers, tables of addresses, tables of offsets, memory, the stack.
.include "rt.inc"
    .data
table: .quad case0, case1, case2, case3, case4, case5, case6, case7
where: .quad 0
    .section .rodata
offsets: .long o0 - offsets, o1 - offsets, o2 - offsets, o3 - offsets
    .text
FUNCTION _start
    mov $1, %r15d
    mov $500, %ebx
1:  mov %ebx, %eax
    imul $0x9e3779b1, %eax, %eax
    shr $13, %eax
    and $7, %eax
    jmp *table(,%rax,8)
case0: add $1, %r15
    jmp next
case1: MIX %rbx
    jmp next
case2: MIX %rax
    jmp next
case3: mov $3, %eax
case4: add %rax, %r15
    jmp next
case5: mov %ebx, %ecx
    and $3, %ecx
    call by_offset
    jmp next
case6: lea next(%rip), %rdx
    jmp *%rdx
case7: lea next(%rip), %rdx
    mov %rdx, where(%rip)
    test %ebx, %ebx
    jmp *where(%rip)
next:
    FLAGS 0xc45
    dec %ebx
    jnz 1b
    mov $40, %ebx
3:  lea 4f(%rip), %rax
    push %rax
    push %rbx
    jmp *8(%rsp)
4:  pop %rcx
    pop %rax
    MIX %rcx
    lea 5f(%rip), %rax
    push %rax
    cmp $20, %ebx
    ret
5:  FLAGS
    dec %ebx
    jnz 3b
    jmp finish
END _start
FUNCTION by_offset
    lea offsets(%rip), %rdx
    movslq (%rdx,%rcx,4), %rcx
    add %rdx, %rcx
    jmp *%rcx
o0: add $7, %r15
    ret
o1: MIX %rbx
    ret
o2: xor %rbx, %r15
    ret
o3: sub $9, %r15
    ret
END by_offset
