// Code that is long to translate and quick to run, for programs whose translations are to be thrown away often.
#include "sem.h"

enum { PAGES = 12, PAGE = 4096, LONGEST = 15 };

typedef unsigned long Code(unsigned long);

// An addition of `seed` and a little at the beginning of each page, and instructions as long as they can be that do nothing.
static inline void build(unsigned char *p, unsigned seed) {
    static const unsigned char nothing[LONGEST] = {0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84};
    memcpy(p, "\x48\x89\xf8", 3); // mov rax, rdi
    int at = 3;
    for (; at < PAGES * PAGE - LONGEST; at += LONGEST) memcpy(p + at, nothing, LONGEST);
    p[at] = 0xc3;
    for (int i = 0; i < PAGES; i++) {
        unsigned char *add = p + 3 + (i * PAGE + LONGEST) / LONGEST * LONGEST;
        memcpy(add, "\x48\x05\x00\x00\x00\x00\x0f\x1f\x84\x00\x00\x00\x00\x00\x90", LONGEST); // add rax, ...; nop
        memcpy(add + 2, &(int){(int)(seed + (unsigned)i)}, 4);
    }
}
// Room for it.
static inline unsigned char *area(void) {
    unsigned char *p = mmap(0, PAGES * PAGE, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    return p;
}
// Writes it anew and runs it, `rounds` times.
static inline unsigned long evict(unsigned char *code, unsigned rounds) {
    unsigned long h = 0;
    for (unsigned round = 0; round < rounds; round++) {
        build(code, round);
        h = ((Code *)code)(h);
    }
    return h;
}
