// cc: -O1
// Jumps and calls through words of a page that is protected, opened, written and protected again; and a jump whose page is
// opened while what it leads to stays.
#include "rt.h"
static void *words[512] __attribute__((aligned(4096), used));
__asm__(".text\n.balign 4096\n"
        "jump_there: jmp *words+24(%rip)\n"
        "call_it: sub $8, %rsp; call *words+16(%rip); add $8, %rsp; ret\n"
        "times: push %rbx; push %rbp; mov %edi, %ebx; xor %ebp, %ebp\n"
        "1: call jump_there; add %eax, %ebp; dec %ebx; jnz 1b; mov %ebp, %eax; pop %rbp; pop %rbx; ret\n"
        ".balign 4096\n"
        "one: xor %eax, %eax; mov $1, %eax; ret\n"
        "two: xor %eax, %eax; mov $3, %eax; dec %eax; ret\n"
        "three: xor %eax, %eax; 1: inc %eax; cmp $3, %eax; jne 1b; ret\n");
int jump_there(void), call_it(void), times(int n), one(void), two(void), three(void);
static const u8 first[2][24] = {
    {0xe8, 0x0b, 0, 0, 0, 0xc3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xe9, 0xeb, 0x0f, 0, 0},       // call 1f; ret; 1: jmp second
    {0x90, 0xe8, 0x0a, 0, 0, 0, 0xc3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xe9, 0xeb, 0x0f, 0, 0},    // nop; call 1f; ret; 1: jmp second
};
static const u8 second[6] = {0x31, 0xc0, 0x8d, 0x47, 0x01, 0xc3}; // xor %eax, %eax; lea 1(%rdi), %eax; ret
int run(i64 *stack) {
    u64 h = 0;
    int (*say[3])(void) = {one, two, three};
    u8 *p = (u8 *)SYS6(NR_mmap, 0x20000000, 2 * 4096, 3, 0x32, -1, 0);
    for (int i = 0; i < 6; i++) p[4096 + i] = second[i];
    SYS3(NR_mprotect, p + 4096, 4096, 5);
    for (int round = 0; round < 12; round++) {
        words[2] = (void *)say[round % 3];
        words[3] = (void *)say[(round + 1) % 3];
        if (round % 4 != 3) SYS3(NR_mprotect, words, 4096, 1);
        SYS3(NR_mprotect, jump_there, 4096, 5); // to be translated anew
        h = hash(h, call_it() + 10 * jump_there() + 100 * times(10 + round));
        h = hash(h, call_it() + 10 * jump_there() + 100 * times(20 + round));
        if (round % 4 != 3) SYS3(NR_mprotect, words, 4096, 3);
        for (int i = 0; i < 24; i++) p[i] = first[round & 1][i];
        SYS3(NR_mprotect, p, 4096, 5);
        for (int i = 0; i < 7; i++) h = hash(h, ((int (*)(int))p)(i));
        for (int i = 0; i < 5; i++) h = hash(h, ((int (*)(int))(p + 4096))(i));
        SYS3(NR_mprotect, p, 4096, 3);
        print("round", h);
    }
    return 0;
}
