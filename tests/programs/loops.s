# LOOP, LOOPE, LOOPNE, JRCXZ, JECXZ, and LOOP on ecx; none of them touches the flags.
.include "rt.inc"
    .text
FUNCTION _start
    mov $100, %ecx
1:  add %rcx, %r15
    loop 1b
    MIX %rcx
    mov $100, %ecx
    xor %eax, %eax
2:  inc %eax
    cmp $40, %eax
    loopne 2b
    FLAGS
    MIX %rcx
    mov $50, %ecx
3:  cmp %ecx, %ecx
    loope 3b
    MIX %rcx
    mov $50, %ecx
4:  cmp $30, %ecx
    loope 4b
    MIX %rcx
    movabs $0xffffffff00000003, %rcx
5:  add $2, %r15
    addr32 loop 5b
    MIX %rcx
    call zeros
    mov $20, %edx
6:  mov %edx, %ecx
    and $3, %ecx
    stc
    jrcxz 7f
    adc $5, %r15
7:  FLAGS
    dec %edx
    jnz 6b
    jmp finish
END _start
FUNCTION zeros
    movabs $0x100000000, %rcx
    jecxz 1f
    inc %r15
1:  jrcxz 2f
    MIX %rcx
2:  mov $1, %ecx
3:  loop 3b
    jrcxz 4f
    ud2
4:  cmp %ecx, %eax
    loop 5f
5:  FLAGS
    ret
END zeros
