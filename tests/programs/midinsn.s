# Jumps into the middle of instructions: the same bytes, read two ways.
.include "rt.inc"
    .text
FUNCTION _start
    mov $64, %ebx
1:  test $1, %bl
    jz 2f
    # b8 imm32 is `mov $imm, %eax`; entered one byte later its immediate is code.
    .byte 0xb8
2:  .byte 0x49, 0xff, 0xc7, 0x90
    mov %ebx, %eax
    and $3, %eax
    lea 3f(%rip), %rdx
    add %rax, %rdx
    jmp *%rdx
3:  nop
    nop
    .byte 0x49
    .byte 0x83, 0xc7, 0x05
    MIX %rbx
    call overlap
    cmp $32, %ebx
    jb 4f
    .byte 0xf0
4:  addq $3, -8(%rsp)
    FLAGS
    dec %ebx
    jnz 1b
    jmp finish
END _start
FUNCTION overlap
    xor %eax, %eax
    jmp 1f + 2
1:  movabs $0x01ebc0ff48c0ff48, %rcx
    nop
    nop
    MIX %rax
    ret
END overlap
