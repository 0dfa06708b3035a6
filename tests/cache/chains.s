# Chains of short blocks, by forward branches that are taken or not, and short loops: of the data and of the code that they use
# some lines contend for the same sets, in an order that only the branches tell.
.include "cache.inc"
    .bss
    .balign 4096
area: .space 65536
    .text
.macro USE n
    mov \n*4096+area(%rip), %rax
    add %rax, \n*4096+area+64*(\n&3)(%rip)
.endm
START
    mov $12345, %ebp
    mov $3000, %ebx
1:  imul $1103515245, %ebp, %ebp
    add $12345, %ebp
    mov %ebp, %edx
    shr $9, %edx
    lea area(%rip), %rsi
    test $1, %dl
    jz 2f
    USE 0
    test $2, %dl
    jnz 3f
    USE 1
2:  USE 2
    test $4, %dl
    jz 4f
3:  mov (%rsi), %rcx
    push %rcx
    USE 3
    pop %rcx
    .balign 512
4:  test $8, %dl
    jnz 5f
    USE 4
    .balign 1024
5:  test $16, %dl
    jz 7f
    mov $3, %ecx
6:  USE 5
    add $4096, %rsi
    mov (%rsi), %rax
    test $32, %dl
    jz 8f
    mov %rax, 8192(%rsi)
8:  dec %ecx
    jnz 6b
7:  USE 6
    jmp 9f
    .balign 2048
10: USE 7
    jmp 11f
9:  test $64, %dl
    jz 10b
    USE 8
    call visit
11: mov %edx, %ecx
    and $7, %ecx
    lea area(%rip), %rdi
    mov (%rdi,%rcx), %al
    USE 9
    test $128, %edx
    jz 12f
    USE 10
12: dec %ebx
    jnz 1b
    EXIT
    .balign 1024
    .type visit, @function
visit:
    USE 11
    test $256, %edx
    jz 13f
    USE 12
    .balign 64
13: USE 13
    ret
    .size visit, . - visit
