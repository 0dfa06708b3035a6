# cpu: avx2
# Accesses whose address r11 gives, or a part of it, which translated code keeps elsewhere: as base, as index, both; with bit offsets;
# in wide groups and across lines; gathers.
.include "cache.inc"
    .data
    .balign 32
i32: .long 0, 17, 300, 5, 1000, 2, 2, 77
    .bss
    .balign 4096
area: .space 65536
    .text
START
    lea area(%rip), %rsi
    mov $16, %ebx
2:  movl $1, (%rsi)             # a gather that faults is not one step
    add $4096, %rsi
    dec %ebx
    jnz 2b
    lea area+4096(%rip), %r11
    mov $300, %ebx
1:  mov (%r11), %rax
    mov %rax, 8(%r11)
    addq $3, 60(%r11)
    push %r11
    mov $24, %ecx
    mov 1(%r11,%rcx,2), %rdx
    mov %dl, (%rcx,%r11)
    lea 7(%r11), %rdi
    sub %rdi, %r11
    mov (%rdi,%r11,4), %r11
    mov $2, %r11d
    lea 100(%r11,%r11,8), %r11d
    pop %r11
    movups 50(%r11), %xmm1
    movups %xmm1, 150(%r11)
    vmovdqu 200(%r11), %ymm2
    vmovdqu %ymm2, 300(%r11)
    mov $5000, %edx
    btsq %rdx, (%r11)
    lea area+1024(%rip), %rdi
    push %r11
    and $511, %r11d
    sub $100, %r11
    btcq %r11, (%rdi)
    btr %r11w, (%rdi)
    cmp $7, %r11                # with flags to be kept
    pop %r11
    mov 16(%r11), %rax
    jl 3f
    cmpb $0, 4000(%r11)
3:
    vmovdqu i32(%rip), %ymm1
    vpcmpeqd %ymm3, %ymm3, %ymm3
    vgatherdps %ymm3, 2(%r11,%ymm1,4), %ymm4
    cmpxchg %r11, 640(%r11)
    mov %r11, %rax
    lea area+4096(%rip), %r11
    imul $136, %rbx, %rdx
    add %rdx, %r11
    xadd %rax, (%r11)
    dec %ebx
    jnz 1b
    EXIT
