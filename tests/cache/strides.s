# Reads and writes in strides from 1 byte to 8 KiB, up and down, over areas smaller and larger than the caches.
.include "cache.inc"
    .bss
    .balign 4096
area: .space 131072
    .text
FUNCTION up                     # rdi: area, rsi: stride, rdx: count
1:  mov (%rdi), %rax
    add %rsi, %rdi
    dec %rdx
    jnz 1b
    ret
END up
FUNCTION down
1:  mov %al, (%rdi)
    sub %rsi, %rdi
    dec %rdx
    jnz 1b
    ret
END down
START
    mov $1, %esi
1:  mov $60000, %eax
    xor %edx, %edx
    div %esi
    cmp $500, %eax
    jbe 2f
    mov $500, %eax
2:  mov %eax, %edx
    mov %eax, %ebx
    lea area(%rip), %rdi
    call up
    mov %ebx, %edx
    lea area+65536(%rip), %rdi
    call down
    mov %ebx, %edx
    lea area(%rip), %rdi
    call up
    lea 1(%rsi,%rsi), %esi
    cmp $8192, %esi
    jb 1b
    mov $64, %esi
3:  mov $32, %edx
    lea area(%rip), %rdi
    call up
    mov $32, %edx
    lea area(%rip), %rdi
    call up
    add %esi, %esi
    cmp $4096, %esi
    jbe 3b
    EXIT
