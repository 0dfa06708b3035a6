// Code in some of four pages, in all combinations, while the others are unmapped, or mapped but not executable; the pages run in
// every order. Each function says where it is; rax points to a word that must stay as it is.
#include "sem.h"

enum { PAGE = 4096, PAGES = 4, PLACES = 3 };
static const int places[PLACES] = {0, 0x800, PAGE - 6};
static unsigned char victim[256] = {1};

static int called(unsigned char *f) {
    int result;
    __asm__ volatile("call *%[f]\n\tmov %%ecx, %[result]"
                     : [result] "=r"(result)
                     : [f] "r"(f), "a"(victim + 1)
                     : "rcx", "memory", "cc");
    return result;
}

int main(void) {
    long sum = 0;
    for (int how = 0; how < 3; how++)
        for (int mapped = 1; mapped < 1 << PAGES; mapped++)
            for (int order = 0; order < 2 * PAGES; order++) {
                unsigned char *reserved = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                unsigned char *window = (unsigned char *)(((unsigned long)reserved + 0x7fff) & ~0x7fffUL);
                for (int page = 0; page < PAGES; page++)
                    for (int i = 0; i < PLACES; i++) {
                        // mov ecx, number; ret: the last one ends with its page.
                        int number = page * 100 + i + 1;
                        unsigned char code[] = {0xb9, number, number >> 8, 0, 0, 0xc3};
                        memcpy(window + page * PAGE + places[i], code, sizeof code);
                    }
                for (int page = 0; page < PAGES; page++) {
                    int there = mapped >> page & 1;
                    if (there)
                        mprotect(window + page * PAGE, PAGE, PROT_READ | PROT_EXEC);
                    else if (how == 0)
                        munmap(window + page * PAGE, PAGE);
                    else if (how == 1)
                        mprotect(window + page * PAGE, PAGE, PROT_NONE);
                }
                for (int n = 0; n < PAGES; n++) {
                    int page = order < PAGES ? (n + order) % PAGES : (PAGES - 1 - n + order) % PAGES;
                    for (int i = 0; i < PLACES && (mapped >> page & 1); i++) {
                        int expected = page * 100 + i + 1, got = called(window + page * PAGE + places[i]);
                        if (got != expected)
                            printf("how %d mapped %x order %d page %d place %d: %d\n", how, mapped, order, page, i, got);
                        sum += got;
                    }
                }
                munmap(reserved, 1 << 16);
            }
    for (int i = 1; i < (int)sizeof victim; i++)
        if (victim[i]) printf("victim %d: %d\n", i, victim[i]);
    printf("%ld\n", sum);
}
