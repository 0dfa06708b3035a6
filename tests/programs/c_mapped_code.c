// cc: -O1
// Code copied into mapped memory, run, unmapped, and replaced by other code at the same address.
#include "rt.h"
static const u8 codes[3][16] = {
    {0x8d, 0x47, 0x01, 0xc3},                                     // lea 1(%rdi), %eax; ret
    {0x89, 0xf8, 0x01, 0xf8, 0x01, 0xf8, 0xc3},                   // mov %edi, %eax; add; add; ret
    {0x31, 0xc0, 0xff, 0xc0, 0xff, 0xcf, 0x75, 0xfa, 0xc3},       // xor; 1: inc %eax; dec %edi; jnz 1b; ret
};
int run(i64 *stack) {
    u64 h = 0;
    for (int round = 0; round < 9; round++) {
        u8 *p = (u8 *)SYS6(NR_mmap, 0x20000000, 4096, 3, 0x32, -1, 0);
        for (int i = 0; i < 16; i++) p[i] = codes[round % 3][i];
        SYS3(NR_mprotect, p, 4096, 5);
        int (*f)(int) = (int (*)(int))p;
        for (int i = 1; i < 30; i++) h = hash(h, f(i));
        print("round", h);
        if (round & 1) {
            SYS3(NR_mprotect, p, 4096, 3);
            for (int i = 0; i < 16; i++) p[i] = codes[(round + 1) % 3][i];
            SYS3(NR_mprotect, p, 4096, 5);
            for (int i = 1; i < 30; i++) h = hash(h, f(i));
        }
        SYS2(NR_munmap, p, 4096);
    }
    print("end", h);
    return 0;
}
