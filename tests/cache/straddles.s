# Accesses that cross a line of 16, 32, 64, 128 or 256 bytes, in sets near and far, first line cold, second cold, both, none.
.include "cache.inc"
    .bss
    .balign 4096
area: .space 65536
    .text
START
    lea area(%rip), %rsi
    mov $16, %ebx
1:  xor %ecx, %ecx
2:  lea (%rsi,%rbx), %rdi
    mov -3(%rdi,%rcx), %rax
    mov %rax, 4093(%rdi,%rcx)
    addl $1, 8189(%rdi,%rcx)
    mov 8193(%rdi,%rcx), %al
    movups 12281(%rdi,%rcx), %xmm0
    movups %xmm0, 16383(%rdi,%rcx)
    incw 20479(%rdi,%rcx)
    mov 24576(%rdi,%rcx), %al
    mov 24573(%rdi,%rcx), %eax
    mov 28671(%rdi,%rcx), %al
    mov %eax, 28669(%rdi,%rcx)
    fldt 32760(%rdi,%rcx)
    fstpt 36856(%rdi,%rcx)
    add %ebx, %ecx
    cmp $2048, %ecx
    jb 2b
    add %ebx, %ebx
    cmp $512, %ebx
    jb 1b
    EXIT
