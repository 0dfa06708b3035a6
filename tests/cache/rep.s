# Repeated string instructions: counts from 0, both directions, straddles, early ends. The reference books a branch for each
# iteration, which no instruction makes. (It runs a repeated LODS once, so that is not here.)
# differs: Bc Bcm
.include "cache.inc"
    .bss
    .balign 4096
a: .space 8192
b: .space 8192
    .text
START
    xor %ebx, %ebx
1:  lea a(%rip), %rsi
    lea b+3(%rip), %rdi
    mov %ebx, %ecx
    rep movsb
    mov %ebx, %ecx
    rep movsq
    lea b+1(%rip), %rdi
    mov %ebx, %ecx
    mov %ebx, %eax
    rep stosb
    mov %ebx, %ecx
    rep stosl
    mov %ebx, %ecx
    rep stosw
    lea b+1(%rip), %rdi
    mov %ebx, %ecx
    repe scasb
    mov %ebx, %ecx
    repne scasl
    lea a(%rip), %rsi
    lea a+4096(%rip), %rdi
    mov %ebx, %ecx
    repe cmpsb
    mov %ebx, %ecx
    repe cmpsq
    movl $9, a+200(%rip)
    lea a(%rip), %rsi
    lea a+2048(%rip), %rdi
    mov %ebx, %ecx
    repe cmpsw
    std
    lea a+4000(%rip), %rsi
    lea b+4001(%rip), %rdi
    mov %ebx, %ecx
    rep movsl
    mov %ebx, %ecx
    rep stosq
    mov %ebx, %ecx
    repne scasb
    cld
    lea a(%rip), %rsi
    lea b(%rip), %rdi
    movsb
    movsq
    stosl
    lodsw
    scasb
    mov %ebx, %ecx
    .byte 0xf3, 0x67, 0xa5
    add $7, %ebx
    cmp $400, %ebx
    jb 1b
    # At an address that does not fit in 32 bits.
    mov $9, %eax
    mov $0xc1234560000, %rdi
    mov $0x4000, %esi
    mov $3, %edx
    mov $0x32, %r10d
    mov $-1, %r8
    xor %r9d, %r9d
    syscall
    mov %rax, %rdi
    xor %eax, %eax
    mov $296, %ecx
    rep stosq
    mov $0xc1234560000, %rax
    mov $37, %ecx
2:  mov (%rax), %rdx
    add $64, %rax
    dec %ecx
    jnz 2b
    # In a block that leaves rsi alone, as the first of all registers, after other accesses.
    mov $0xc1234563010, %rbx
    lea 8(%rbx), %rdi
    xor %eax, %eax
    mov $79, %ecx
    jmp 3f
3:  push %rbp
    movq $1, (%rbx)
    mov %rdx, 0x278(%rbx)
    rep stosq
    pop %rbp
    jmp 4f
4:  EXIT
