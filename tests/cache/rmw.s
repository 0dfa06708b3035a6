# Read-modify-write of memory in all its forms, within lines and across them.
.include "cache.inc"
    .bss
    .balign 64
area: .space 4096
    .text
START
    lea area(%rip), %rsi
    mov $5, %edx
    xor %ebx, %ebx
1:  lea (%rsi,%rbx,4), %rdi
    addb $1, (%rdi)
    addw $1, 64(%rdi)
    addl %edx, 128(%rdi)
    addq %rdx, 192(%rdi)
    adcl $3, 256(%rdi)
    sbbq %rdx, 320(%rdi)
    subw %dx, 384(%rdi)
    andb %dl, 448(%rdi)
    orl $0x100, 512(%rdi)
    xorq $-1, 576(%rdi)
    incb 640(%rdi)
    decq 704(%rdi)
    notl 768(%rdi)
    negw 832(%rdi)
    mov %ebx, %ecx
    shll %cl, 896(%rdi)
    shrq $3, 960(%rdi)
    sarb 1024(%rdi)
    rolw $5, 1088(%rdi)
    rorl %cl, 1152(%rdi)
    rclq $1, 1216(%rdi)
    rcrl %cl, 1280(%rdi)
    rclb $2, 1344(%rdi)
    shldl $4, %edx, 1408(%rdi)
    shrdq %cl, %rdx, 1472(%rdi)
    btsl $7, 1536(%rdi)
    btrq $40, 1600(%rdi)
    btcw $3, 1664(%rdi)
    btl $9, 1728(%rdi)
    btl %edx, 1792(%rdi)
    btsq %rbx, 1856(%rdi)
    btrl %ebx, 1920(%rdi)
    btcw %bx, 1984(%rdi)
    neg %rbx
    btsq %rbx, 2048(%rdi)
    btl %ebx, 2112(%rdi)
    neg %rbx
    cmpxchg %edx, 2176(%rdi)
    cmpxchg %dl, 2240(%rdi)
    cmpxchg %rdx, 2304(%rdi)
    mov $7, %r8d
    xadd %r8d, 2368(%rdi)
    xadd %r8b, 2432(%rdi)
    setc 2496(%rdi)
    inc %ebx
    cmp $48, %ebx
    jne 1b
    EXIT
