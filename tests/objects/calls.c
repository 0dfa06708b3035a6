// cc: -O1
// Allocators of its own, which are left in other ways than by returning, or in the middle of which something else happens. Prints, as
// `blocks`, the accesses by the line that has made the block, behind the number of the process. Between any two accesses it is
// elsewhere, so that each misses a cache of two lines.
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PLAIN, WITHIN, AFTER_JUMP, AFTER_HANDLER_JUMP, HANDLED, FORKED, ARRAY, SITES };
enum { RETURN, JUMP, RAISE, RAISE_AND_JUMP, FORK };

#define USES 6
#include "sites.h"
static jmp_buf out;
static sigjmp_buf out_of_handler;
static int jumps;
static pid_t child = -1;
static char arena[1 << 20] __attribute__((aligned(64)));
static size_t used;
static char *lent;

// Takes back what was lent; then it returns, or never does.
static void handler(int signal) {
    free(lent);
    lent = 0;
    if (jumps)
        siglongjmp(out_of_handler, signal);
}

__attribute__((noinline)) void *mine(int what, size_t size) {
    char *block = arena + used;
    switch (what) {
    case JUMP: longjmp(out, 1);
    case RAISE: raise(SIGUSR1); break;
    case RAISE_AND_JUMP: jumps = 1; raise(SIGUSR1); break;
    case FORK: child = fork(); break;
    }
    if (used + size > sizeof arena)
        abort();
    used += (size + 63) / 64 * 64;
    __asm__ volatile("" : : : "memory");
    return block;
}

__attribute__((noinline)) void *my_array(size_t count, size_t size) {
    void *block = mine(RETURN, count * size);
    __asm__ volatile("" : : : "memory");
    return block;
}

__attribute__((noinline)) void *my_malloc(size_t size) {
    void *block = malloc(size);
    __asm__ volatile("" : : : "memory");
    return block;
}

// With more of the stack than whoever calls it has.
__attribute__((noinline)) static void deeper(int n, int site) {
    volatile char room[512];
    room[n] = 1;
    if (n > 0)
        return deeper(n - 1, site), (void)room[n];
    char *block;
    if (site == AFTER_JUMP) {
        line[site] = __LINE__; block = mine(RETURN, 100);
        use(block, 100, site);
    } else {
        line[site] = __LINE__; block = my_malloc(100);
        use(block, 100, site);
        free(block);
    }
}

int main(void) {
    signal(SIGUSR1, handler);
    for (int round = 0; round < 40; round++) {
        line[PLAIN] = __LINE__; char *plain = mine(RETURN, 300);
        use(plain, 300, PLAIN);
        line[WITHIN] = __LINE__; char *within = my_malloc(500);
        use(within, 500, WITHIN);
        free(within);
        line[ARRAY] = __LINE__; char *array = my_array(10, 30);
        use(array, 300, ARRAY);
        if (setjmp(out) == 0)
            mine(JUMP, 10);
        deeper(5, AFTER_JUMP);
        lent = malloc(200);
        jumps = 0;
        line[HANDLED] = __LINE__; char *handled = mine(RAISE, 200);
        use(handled, 200, HANDLED);
        lent = malloc(200);
        if (sigsetjmp(out_of_handler, 1) == 0)
            mine(RAISE_AND_JUMP, 10);
        deeper(5, AFTER_HANDLER_JUMP);
    }
    line[FORKED] = __LINE__; char *forked = mine(FORK, 4096);
    for (int n = 0; n < 30 + 10 * (child == 0); n++)
        use(forked, 4096, FORKED);
    if (child > 0)
        waitpid(child, 0, 0);
    for (int site = 0; site < SITES; site++)
        printf("%d %d %lu %lu\n", (int)getpid(), line[site], counts[site][0], counts[site][1]);
    fflush(stdout);
    return 0;
}
