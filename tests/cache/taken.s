# cpu: avx2
# Accesses whose address r8, r9, r10 or r11 gives, or a part of it, which translated code keeps elsewhere: as base, as index, both; with bit
# offsets; in wide groups and across lines; gathers.
.include "cache.inc"
    .data
    .balign 32
i32: .long 0, 17, 300, 5, 1000, 2, 2, 77
    .bss
    .balign 4096
area: .space 65536
    .text
.macro ACCESSES r
    lea area+4096(%rip), %\r
    mov $300, %ebx
1:  mov (%\r), %rax
    mov %rax, 8(%\r)
    addq $3, 60(%\r)
    push %\r
    mov $24, %ecx
    mov 1(%\r,%rcx,2), %rdx
    mov %dl, (%rcx,%\r)
    lea 7(%\r), %rdi
    sub %rdi, %\r
    mov (%rdi,%\r,4), %\r
    mov $2, %\r\()d
    lea 100(%\r,%\r,8), %\r\()d
    pop %\r
    movups 50(%\r), %xmm1
    movups %xmm1, 150(%\r)
    vmovdqu 200(%\r), %ymm2
    vmovdqu %ymm2, 300(%\r)
    mov $5000, %edx
    btsq %rdx, (%\r)
    lea area+1024(%rip), %rdi
    push %\r
    and $511, %\r\()d
    sub $100, %\r
    btcq %\r, (%rdi)
    btr %\r\()w, (%rdi)
    cmp $7, %\r                # with flags to be kept
    pop %\r
    mov 16(%\r), %rax
    jl 3f
    cmpb $0, 4000(%\r)
3:
    vmovdqu i32(%rip), %ymm1
    vpcmpeqd %ymm3, %ymm3, %ymm3
    vgatherdps %ymm3, 2(%\r,%ymm1,4), %ymm4
    cmpxchg %\r, 640(%\r)
    mov %\r, %rax
    lea area+4096(%rip), %\r
    imul $136, %rbx, %rdx
    add %rdx, %\r
    xadd %rax, (%\r)
    dec %ebx
    jnz 1b
.endm

.macro BOTH base, index
    imul $24, %rbx, %\index
    mov (%\base,%\index), %rax
    mov %\index, 8(%\base,%\index,2)
    movups 40(%\base,%\index), %xmm1
    vmovdqu %ymm1, 3000(%\base,%\index,8)
.endm

START
    TOUCH area, 16
    ACCESSES r11
    ACCESSES r10
    ACCESSES r9
    ACCESSES r8
    lea area+4096(%rip), %r10
    mov $300, %ebx
1:  BOTH r10, r11
    cmp $150, %ebx              # with flags to be kept
    mov 60(%r10,%r11), %r11
    jl 3f
    and $1023, %r11d
    addq $1, (%r10,%r11)
3:  and $1023, %r11d
    btsq %r11, 4096(%r10)
    push %r10
    and $511, %r10d
    lea area(%rip), %rdi
    btcq %r10, (%rdi)
    pop %r10
    mov (%r10), %r10
    lea area+4096(%rip), %r10
    dec %ebx
    jnz 1b
    lea area+4096(%rip), %r9
    mov $300, %ebx
1:  BOTH r9, r8
    mov (%r9,%r8), %rdx
    mulx 8(%r9,%r8), %r11, %r10
    lea 4096(%r9), %r11
    cmp $150, %ebx              # with flags to be kept
    mov 60(%r11,%r8), %r8
    jl 3f
    and $1023, %r8d
    addq $1, (%r9,%r8)
3:  and $1023, %r8d
    mov %r9, %r10
    add %r8, (%r10,%r8)
    and $511, %r8d
    btcq %r8, 4096(%r9)
    dec %ebx
    jnz 1b
    EXIT
