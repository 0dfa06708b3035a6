# Two nested loops and a call, for tests: 10 rounds of 20.
    .globl _start
    .type _start, @function
_start:
    mov $10, %ebx
outer:
    mov $20, %edx
inner:
    test $1, %dl
    je even
    add $3, %eax
even:
    dec %edx
    jnz inner
    call work
    dec %ebx
    jnz outer
    mov $60, %eax
    xor %edi, %edi
    syscall
    nop
    .size _start, .-_start
    .type work, @function
work:
    inc %eax
    ret
    .size work, .-work
