// cc: -no-pie
// Code in the heap, which is given back and asked for again: what is not there any more does not run, and what is there now does. The same
// where advice to drop pages comes for many ranges at once, of the process itself.
#define _GNU_SOURCE
#include "int80.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/uio.h>
static void set(unsigned char *p, int value) { p[0] = 0xb8, memcpy(p + 1, &value, 4), p[5] = 0xc3; } // mov eax, value; ret
static sigjmp_buf back;
static void fault(int signal) { siglongjmp(back, signal); }
static int run(unsigned char *p) { int s = sigsetjmp(back, 1); return s ? -s : ((int (*)(void))p)(); }
static long native(long nr, long a) { return syscall(nr, a); }
static long other(long nr, long a) { (void)nr; return int80(45, a, 0, 0, 0, 0); }

// The heap's last two pages; the heap ends at `end`.
static void give_back(unsigned char *end, long (*brk_by)(long, long), int always) {
    unsigned char *at = end - 8192;
    for (int round = 0; round < 3; round++) {
        set(at, 10 + round), set(at + 4096, 20 + round);
        if (!always) CHECK(mprotect(at, 8192, round == 1 ? 5 : 7) == 0);
        printf("%d %d", run(at), run(at + 4096));
        // Not to a page's end: the first page stays.
        CHECK(brk_by(SYS_brk, (long)at + 100) == (long)at + 100);
        printf(" %d %d", run(at), run(at + 4096));
        CHECK(brk_by(SYS_brk, (long)end) == (long)end);
        // In its place are zeros, which nobody may execute unless all that can be read can be executed.
        if (!always) printf(" %d", run(at + 4096));
        if (!always) CHECK(mprotect(at, 8192, 3) == 0);
        set(at + 4096, 30 + round);
        if (!always) CHECK(mprotect(at, 8192, 5) == 0);
        printf(" %d\n", run(at + 4096));
        if (!always) CHECK(mprotect(at, 8192, 3) == 0);
    }
}

static void drop(unsigned char *at, int file, int always) {
    int self = syscall(SYS_pidfd_open, getpid(), 0);
    CHECK(self >= 0);
    for (int round = 0; round < 2; round++) {
        CHECK(mmap(at, 8192, always ? 7 : 5, MAP_PRIVATE | MAP_FIXED, file, 0) == at);
        printf("%d %d", run(at), run(at + 4096));
        if (!always) CHECK(mprotect(at, 8192, 3) == 0);
        set(at, 50 + round), set(at + 4096, 60 + round);
        if (!always) CHECK(mprotect(at, 8192, 5) == 0);
        printf(" %d %d", run(at), run(at + 4096));
        struct iovec ranges[] = {{at + 4096, 4096}, {at, 4096}};
        // Kernels before 6.13 refuse it.
        long dropped = syscall(SYS_process_madvise, self, ranges + round, 2 - round, MADV_DONTNEED, 0);
        printf(" %d %d %d\n", (int)dropped, run(at), run(at + 4096));
    }
    close(self);
}

static void all(int file, int always) {
    unsigned char *end = (unsigned char *)(((long)sbrk(0) + (1 << 20)) & -4096);
    CHECK(brk(end) == 0);
    give_back(end, native, always);
    // That table has 32-bit addresses, and an answer of more bits is cut.
    if ((long)end < 0x7fffffff) give_back(end, other, always);
    drop((unsigned char *)0x20000000, file, always);
}

int main(void) {
    struct sigaction action = {.sa_handler = fault, .sa_flags = SA_NODEFER};
    sigaction(SIGSEGV, &action, 0);
    setvbuf(stdout, 0, _IONBF, 0);
    int file = memfd_create("code", 0);
    CHECK(file >= 0 && ftruncate(file, 8192) == 0);
    unsigned char *w = mmap(0, 8192, 3, MAP_SHARED, file, 0);
    set(w, 40), set(w + 4096, 41);
    all(file, 0);
    // What is asked for from now on can be executed at once.
    CHECK(personality(READ_IMPLIES_EXEC) != -1);
    all(file, 1);
    return 0;
}
