# x87: arithmetic, stack operations, comparisons, transcendental functions, control word, environment.
.include "rt.inc"
    .data
a: .double 3.25
b: .double -1.5
f: .float 0.1
i: .long 12345
s: .short -77
l: .quad 123456789012345
t: .space 16
r: .space 16
cw: .short 0x037f, 0x0c7f
env: .space 128
    .text
.macro OUT
    fstpl r(%rip)
    mov r(%rip), %rax
    MIX %rax
.endm
FUNCTION _start
    fninit
    mov $40, %ebx
1:  fldl a(%rip)
    faddl b(%rip)
    fmuls f(%rip)
    fidivl i(%rip)
    fisubs s(%rip)
    OUT
    fildll l(%rip)
    fsqrt
    fld1
    fldpi
    fmulp
    fsubrp
    fchs
    fabs
    OUT
    dec %ebx
    jnz 1b
    fldl a(%rip)
    fldl b(%rip)
    fcomi %st(1), %st
    FLAGS 0x45
    fucomip %st(1), %st
    FLAGS 0x45
    fxch %st(0)
    fldz
    fcompp
    fnstsw %ax
    and $0x4500, %eax
    MIX %rax
    fldl a(%rip)
    fldl b(%rip)
    fcmovb %st(1), %st
    OUT
    fstp %st(0)
    fldl a(%rip)
    fistpl r(%rip)
    mov r(%rip), %eax
    MIX %rax
    fldcw cw+2(%rip)
    fldl a(%rip)
    fistps r(%rip)
    movzwl r(%rip), %eax
    MIX %rax
    fldl a(%rip)
    fisttpll r(%rip)
    mov r(%rip), %rax
    MIX %rax
    fldcw cw(%rip)
    fnstcw r(%rip)
    movzwl r(%rip), %eax
    MIX %rax
    fldl a(%rip)
    fldl b(%rip)
    fscale
    OUT
    frndint
    OUT
    fldl b(%rip)
    fnstenv env(%rip)
    fldenv env(%rip)
    fldl a(%rip)
    fstpt t(%rip)
    fldt t(%rip)
    fprem
    OUT
    ffree %st(0)
    fnclex
    emms
    mov $7, %eax
    movd %eax, %mm0
    paddd %mm0, %mm0
    movq %mm0, r(%rip)
    mov r(%rip), %rax
    MIX %rax
    emms
    jmp finish
END _start
