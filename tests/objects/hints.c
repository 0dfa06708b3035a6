// cc: -O1
// Walks over arrays of which one is larger than the last level, goes down columns, and follows a list; each by a loop of four instructions, whose
// access has a symbol.
#include <stdio.h>
#include <stdlib.h>

void far_walk(const void *from, long times);
void near_walk(const void *from, long times);
void column(void *from, long times);
void follow(const void *from, long times);

#define LOOP(function, site, access, step)                                                                                              \
    __asm__(".text\n.type " function ", @function\n" function ":\n.globl " function ", " site "\n" site ": " access "\n\t" step             \
            "\n\tdec %rsi\n\tjnz " site "\n\tret\n.size " function ", .-" function "\n");

LOOP("far_walk", "site_far", "mov (%rdi), %rax", "add $8, %rdi")
LOOP("near_walk", "site_near", "mov (%rdi), %rax", "add $8, %rdi")
LOOP("column", "site_column", "mov %rsi, (%rdi)", "add $4800, %rdi")
LOOP("follow", "site_follow", "mov (%rdi), %rdi", "test %rdi, %rdi")

enum { FAR = 2000000, NEAR = 100000, ROWS = 600, NODES = 100000 };

int main(void) {
    char *far = aligned_alloc(4096, FAR * 8L);
    far_walk(far, FAR);
    char *near = aligned_alloc(4096, NEAR * 8L);
    for (volatile int pass = 0; pass < 10; pass++)
        near_walk(near, NEAR);
    char *matrix = aligned_alloc(4096, ROWS * ROWS * 8L);
    for (volatile int i = 0; i < ROWS; i++)
        column(matrix + 8 * i, ROWS);
    // The step from each node to the next differs.
    char *nodes = aligned_alloc(4096, NODES * 64L);
    unsigned long at = 0;
    for (long i = 0; i < NODES; i++) {
        unsigned long next = (at * 4801 + 7) % NODES;
        *(char **)(nodes + 64 * at) = nodes + 64 * next;
        at = next;
    }
    follow(nodes, NODES);
    printf("%d\n", far && near);
    return 0;
}
