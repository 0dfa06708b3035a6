// System calls by the instruction of 32-bit programs: other numbers, and arguments of 32 bits.
#include "sem.h"

enum {
    NR_FORK = 2, NR_READ = 3, NR_EXECVE = 11, NR_KILL = 37, NR_MUNMAP = 91, NR_MPROTECT = 125, NR_NANOSLEEP = 162, NR_POLL = 168,
    NR_SIGPROCMASK = 175, NR_SIGSUSPEND = 179, NR_VFORK = 190, NR_MMAP2 = 192, NR_GETPPID = 64, NR_EPOLL_WAIT = 256
};

static inline int int80(int nr, long a, long b, long c, long d, long e) {
    int r;
    __asm__ volatile("int $0x80" : "=a"(r) : "a"(nr), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e) : "memory", "r8", "r9", "r10", "r11");
    return r;
}
// Memory that such a call can point to.
static inline void *low(void) {
    void *p = mmap(0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    CHECK(p != MAP_FAILED);
    return p;
}
