# Conditional branches to code that lies far away, as compilers put what is seldom executed: not taken, taken now and then,
# always taken; in a row, with flags that are needed on both ways, in a loop, and back into the middle. And so many of them that
# branches nearby are taken to be rare, too.
.include "rt.inc"
    .text
FUNCTION _start
    xor %r12d, %r12d
    mov $200, %ebx
rounds:
    mov %ebx, %edi
    call now_and_then
    call in_a_row
    call kept_flags
    mov %ebx, %edi
    call many
    MIX %r12
    dec %ebx
    jnz rounds
    jmp finish
END _start
FUNCTION now_and_then
    mov %edi, %eax
    and $63, %eax
    cmp $17, %eax
    je far_one
    add $3, %r12
    mov %r12, %rcx
    test $0x700, %edi
    jz far_two
back_one:
    xor %ecx, %ecx
    add $1, %r12
    ret
END now_and_then
FUNCTION in_a_row
    cmp $1, %edi
    jb far_three
    mov %edi, %eax
    cmp $100000, %eax
    ja far_three
    mov %eax, %edx
    test $1, %edx
    jnz far_four
    mov $7, %edx
    cmp $7, %edx
    je far_five
    mov $8, %edx
back_two:
    mov $9, %edx
    add %rdx, %r12
    ret
END in_a_row
FUNCTION kept_flags
    # The carry is needed where it falls through, and where it is taken.
    mov %edi, %eax
    shl $25, %eax
    js far_six
    adc $0, %r12
    mov $1, %eax
    add %rax, %r12
    ret
END kept_flags
.macro STEP
    add $3, %edi
    test $(1 << (\@ % 8)), %edi
    jnz 1f
    inc %r12
1:
    .if \@ % 6 == 0
    cmp $(\@ % 128), %dil
    je away_\@
returned_\@:
    dec %r12
    .pushsection .text.far, "ax", @progbits
away_\@:
    add $3, %r12
    jmp returned_\@
    .popsection
    .endif
.endm
FUNCTION many
    .rept 600
    STEP
    .endr
    ret
END many
    .skip 70000, 0x90
FUNCTION elsewhere
far_one:
    add $5, %r12
    ret
far_two:
    add $7, %r12
    jmp back_one
far_three:
    add $11, %r12
    ret
far_four:
    add $13, %r12
    dec %edi
    jmp back_two
far_five:
    add $17, %r12
    jmp back_two
far_six:
    adc $1, %r12
    ret
END elsewhere
