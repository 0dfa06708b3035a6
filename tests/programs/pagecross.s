# Instructions and blocks that lie across page borders, and branches between pages.
.include "rt.inc"
    .text
FUNCTION _start
    mov $5, %ebx
1:  call cross
    dec %ebx
    jnz 1b
    jmp finish
END _start
    .balign 4096
FUNCTION cross
    jmp 1f
    .skip 4096 - 7 - (. - cross)
1:  movabs $0x1122334455667788, %rax
    MIX %rax
    jmp 2f
    .balign 4096
    .skip 4094
2:  add $0x12345678, %eax
    MIX %rax
    test %ebx, %ebx
    jnz 3f
    ud2
    .balign 4096
    .skip 4095
3:  call 4f
    .byte 0x48
    inc %edx
    ret
    .balign 4096
    .skip 4093
4:  mov %ebx, %eax
    mov %eax, %edx
    .skip 4096*3 - 5, 0x90
    MIX %rdx
    ret
END cross
