// Instructions of 15 bytes that begin on one page and end on another, at every place where they can be cut: also when the other
// page is changed, replaced, or cannot be executed any more.
#include "sem.h"
enum { PAGE = 4096, LONGEST = 15 };
static sigjmp_buf back;
static char *volatile at;
static void h(int s UNUSED, siginfo_t *i, void *c UNUSED) { at = i->si_addr, siglongjmp(back, 1); }
// Five prefixes that do nothing, mov rax, value; ret.
static void put(unsigned char *p, unsigned long value) {
    unsigned char code[LONGEST + 1] = {0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x48, 0xb8};
    memcpy(code + 7, &value, 8);
    code[LONGEST] = 0xc3;
    memcpy(p, code, sizeof code);
}
int main(void) {
    on(SIGSEGV, h, 0);
    for (int cut = 1; cut < LONGEST; cut++) {
        unsigned char *p = mmap(0, 2 * PAGE, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *code = p + PAGE - cut;
        unsigned long (*volatile f)(void) = (unsigned long (*)(void))code;
        put(code, 0x1111111111111111);
        printf("%d %lx", cut, f());
        // Only what is on the other page.
        memset(p + PAGE + LONGEST - cut - 1, 0x22, 1);
        printf(" %lx", f());
        CHECK(mmap(p + PAGE, PAGE, 7, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p + PAGE);
        put(code, 0x3333333333333333);
        printf(" %lx", f());
        CHECK(mprotect(p + PAGE, PAGE, PROT_READ | PROT_WRITE) == 0);
        if (sigsetjmp(back, 1) == 0) printf(" %lx", f());
        else printf(" fault at %ld", (long)(at - (char *)p));
        CHECK(mprotect(p + PAGE, PAGE, PROT_READ | PROT_EXEC) == 0);
        printf(" %lx", f());
        CHECK(munmap(p + PAGE, PAGE) == 0);
        if (sigsetjmp(back, 1) == 0) printf(" %lx\n", f());
        else printf(" fault at %ld\n", (long)(at - (char *)p));
        munmap(p, PAGE);
    }
}
