# Much code: 6,000 different blocks over half a megabyte, walked through four times, forwards and in strides.
.include "rt.inc"
    .text
FUNCTION _start
    mov $4, %ebx
1:  call blocks
    dec %ebx
    jnz 1b
    jmp finish
END _start
FUNCTION blocks
    n = 0
    .rept 3000
    add $n, %r15d
    imul $(n * 2 + 1), %r15d, %eax
    test $(1 << (n % 11)), %eax
    jz 1f
    rol $5, %r15
    xor $n, %eax
    .if n % 7 == 0
    call small
    .endif
    .if n % 5 == 0
    lea 1f(%rip), %rdx
    jmp *%rdx
    .skip 60, 0xcc
    .endif
1:  lea 1(%r15,%rax), %r15
    n = n + 1
    .endr
    ret
END blocks
FUNCTION small
    ror $3, %r15
    ret
END small
