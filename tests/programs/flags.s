# Flags that live across block ends, calls, returns, jumps, indirect jumps, system calls not in between, and shifts by nothing.
.include "rt.inc"
    .data
t: .quad a1, a2
    .text
FUNCTION _start
    mov $300, %ebx
1:  mov %ebx, %eax
    imul $0x8088405, %eax, %eax
    inc %eax
    mov %eax, %ebx
    add %al, %ah
    jmp 2f
2:  jc 3f
    FLAGS
3:  adc $0, %r15
    sub %bl, %bh
    call through
    jo 4f
    sbb $0, %r15
4:  FLAGS 0xcd5
    cmp %ah, %bl
    call setter
    setb %cl
    setl %ch
    MIX %rcx
    lea t(%rip), %rdx
    mov %ebx, %esi
    bt $3, %esi
    lea 5f(%rip), %rdi
    jmp *%rdi
5:  mov $0, %ecx
    adc %ecx, %ecx
    add %bl, %bl
    jmp *(%rdx,%rcx,8)
a1: setc %al
    jmp 6f
a2: setno %al
6:  FLAGS
    MIX %rax
    cmp $0x40000000, %ebx
    mov $0, %ecx
    shl %cl, %eax
    FLAGS
    shrd %cl, %ebx, %eax
    FLAGS
    rol %cl, %eax
    FLAGS
    mov $0x20, %ecx
    sar %cl, %ebx
    FLAGS
    stc
    inc %ebx
    dec %ebx
    adc $0, %r15
    lahf
    and $0xd5, %ah
    xor $0x11, %ah
    sahf
    FLAGS 0xcd5
    cmc
    std
    jmp 7f
7:  FLAGS 0x400
    cld
    xor %ecx, %ecx
    add $0x7fffffff, %ebx
    mov $0, %ecx
    lea 8f(%rip), %rdi
    push %rdi
    ret
8:  jo 9f
    js 9f
    inc %r15
9:  FLAGS
    add $1, %r12d
    cmp $300, %r12d
    jne 1b
    jmp finish
END _start
FUNCTION through
    jz 1f
    ret
1:  ret
END through
FUNCTION setter
    mov %ebx, %edx
    lea 1(%rdx), %rdx
    mov %rdx, -24(%rsp)
    push %rbx
    pop %rbx
    jnc 1f
    ret
1:  jmp through
END setter
