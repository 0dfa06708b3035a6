# oracle: twin
# What the reference does not know: pop of a word to memory, segment registers, enter with outer frames, xlat, bit tests with
# word registers, string compares, repeated LODS, cmp of 32-bit addresses.
.include "cache.inc"
    .data
    .balign 64
table: .space 256
w: .word 1, 2, 3, 4, 5, 6, 7, 8
    .text
START
    mov $40, %r12d
1:  pushw w(%rip)
    popw w+2(%rip)
    push %fs
    pop %fs
    mov %rsp, %rbp
    enter $16, $3
    leave
    mov %rsp, %rax
    lea stack_top(%rip), %rsp
    lea table(%rip), %rbx
    mov %r12b, %al
    xlat
    mov %r12d, %ecx
    neg %cx
    btw %cx, w+8(%rip)
    lea table(%rip), %rsi
    lea table+60(%rip), %rdi
    cmpsb
    cmpsq
    mov %r12d, %ecx
    rep lodsb
    mov %r12d, %ecx
    rep lodsq
    lea table(%rip), %rsi
    lea table+128(%rip), %rdi
    mov %r12d, %ecx
    repne cmpsl
    lea table(%rip), %rsi
    mov %r12d, %ecx
    addr32 rep lodsl
    lea table(%rip), %eax
    mov 4(%eax), %edx
    mov %edx, 60(%eax,%r12d)
    dec %r12d
    jnz 1b
    EXIT
