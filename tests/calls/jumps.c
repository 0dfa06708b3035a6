// Jumps of every kind, where they are counted: short and long loops, one block that is its own target, branches that lead to where they
// would have gone anyway, loops by rcx, jumps through tables within a function and out of it, to the middle of another one,
// as last calls, and out of frames that they cut.
#include <stdio.h>

long by_table(long n);
long to_next(long n);
long by_rcx(long n);
long halves(long n);
long last(long n);
long middle(long n);
long cuts(long n);

__asm__(
    ".text\n"
    // Eight targets by an indirect jump, each of which goes on to the same place.
    ".type by_table, @function\n"
    "by_table: xorl %eax, %eax\n"
    "1: movq %rdi, %rcx\n andl $7, %ecx\n"
    "leaq 9f(%rip), %rdx\n movslq (%rdx,%rcx,4), %rcx\n addq %rdx, %rcx\n jmp *%rcx\n"
    "10: addq $1, %rax\n jmp 8f\n"
    "11: addq $2, %rax\n jmp 8f\n"
    "12: addq $3, %rax\n jmp 8f\n"
    "13: addq $4, %rax\n"
    "14: addq $5, %rax\n jmp 8f\n"
    "15: addq $6, %rax\n jc 8f\n jmp 8f\n"
    "8: decq %rdi\n jnz 1b\n ret\n"
    ".section .rodata\n .balign 4\n"
    "9: .long 10b-9b, 11b-9b, 12b-9b, 13b-9b, 14b-9b, 15b-9b, 10b-9b, 12b-9b\n .text\n"
    ".size by_table, .-by_table\n"

    // Taken or not, it goes on at the same place.
    ".type to_next, @function\n"
    "to_next: xorl %eax, %eax\n"
    "1: testb $1, %dil\n jz 2f\n"
    "2: incq %rax\n testb $3, %dil\n jz 3f\n"
    "3: jmp 4f\n"
    "4: decq %rdi\n jnz 1b\n ret\n"
    ".size to_next, .-to_next\n"

    ".type by_rcx, @function\n"
    "by_rcx: xorl %eax, %eax\n"
    "1: movl $5, %ecx\n"
    "2: incq %rax\n loop 2b\n"
    "movq %rdi, %rcx\n andl $1, %ecx\n jrcxz 3f\n incq %rax\n"
    "3: testb $7, %dil\n movl $3, %ecx\n"
    "4: incq %rax\n decl %r8d\n loopne 4b\n"
    "decq %rdi\n jnz 1b\n ret\n"
    ".size by_rcx, .-by_rcx\n"

    // Nothing of what is between is executed; half of the jumps are taken.
    ".type halves, @function\n"
    "halves: xorl %eax, %eax\n"
    "1: testb $1, %dil\n jnz 3f\n"
    "2: incq %rax\n jmp 5f\n ud2\n"
    "3: testb $2, %dil\n jnz 2b\n"
    "4: addq $2, %rax\n"
    "5: decq %rdi\n jg 1b\n ret\n"
    ".size halves, .-halves\n"

    // A jump as a call, conditional or not.
    ".type leaf, @function\n"
    "leaf: movq %rdi, %rax\n testb $1, %dil\n jz 1f\n incq %rax\n"
    "1: ret\n"
    ".size leaf, .-leaf\n"
    ".type last, @function\n"
    "last: testb $2, %dil\n jz leaf\n testb $4, %dil\n jz 1f\n incq %rdi\n"
    "1: jmp leaf\n"
    ".size last, .-last\n"

    // To the middle of another function and back, which is no call.
    ".type middle, @function\n"
    "middle: xorl %eax, %eax\n"
    "1: testb $1, %dil\n jz inner\n"
    "back: decq %rdi\n jnz 1b\n ret\n"
    ".size middle, .-middle\n"
    ".type other, @function\n"
    "other: ud2\n"
    "inner: incq %rax\n testb $2, %dil\n jz 2f\n leaq back(%rip), %rcx\n jmp *%rcx\n"
    "2: jmp back\n"
    ".size other, .-other\n"

    // What is called cuts its own frame off and goes on in its caller.
    ".type cut, @function\n"
    "cut: addq $8, %rsp\n testb $1, %dil\n jz 1f\n incq %rax\n"
    "1: jmp cut_back\n"
    ".size cut, .-cut\n"
    ".type cuts, @function\n"
    "cuts: xorl %eax, %eax\n"
    "1: call cut\n ud2\n"
    "cut_back: decq %rdi\n jnz 1b\n ret\n"
    ".size cuts, .-cuts\n");

// Each is asked for in small parts, so that there is something for whoever comes in between.
#define MANY(name)                                                                                                     \
    __attribute__((noinline)) static long many_##name(long n)                                                          \
    {                                                                                                                  \
        long sum = 0;                                                                                                  \
        for (long i = 0; i < n; i++) sum += name(1 + (i & 63));                                                        \
        return sum;                                                                                                    \
    }
MANY(by_table)
MANY(to_next)
MANY(by_rcx)
MANY(halves)
MANY(last)
MANY(middle)
MANY(cuts)

int main(void)
{
    long sum = many_by_table(100) + many_to_next(100) + many_by_rcx(100) + many_halves(100) + many_last(1000)
        + many_middle(100) + many_cuts(100);
    printf("%ld\n", sum);
    return 0;
}
