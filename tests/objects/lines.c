// cc: -O1
// Loads lines of arrays of its own, of whose use there is a closed form, with nothing but the array's accesses in between. Arrays are
// smaller than the first level's cache, so that each line is loaded once. `objects_of_calls.rs` has what is expected.
#include <stdio.h>

enum { LINES = 40 };

#define ALONE __attribute__((aligned(4096)))

static volatile double sparse[LINES * 8] ALONE, dense[LINES * 8] ALONE, twice[LINES * 8] ALONE;
static volatile char across[LINES * 128 + 8] ALONE;

// Two variables in one line.
extern volatile double left[4], right[4];
__asm__(".pushsection .bss\n.balign 4096\n"
        ".type left, @object\n.size left, 32\nleft: .zero 32\n"
        ".type right, @object\n.size right, 32\nright: .zero 32\n.balign 4096\n.popsection");

int main(void) {
    for (int i = 0; i < LINES; i++)
        sparse[i * 8 + 3]; // a number of eight, once
    for (int i = 0; i < LINES * 8; i++)
        dense[i] = 1; // all, each once
    for (int i = 0; i < LINES; i++) {
        twice[i * 8]; // two of eight, each twice
        twice[i * 8 + 7];
        twice[i * 8];
        twice[i * 8 + 7];
    }
    for (int i = 0; i < LINES; i++)
        *(volatile double *)(across + i * 128 + 60); // the end of a line, and the beginning of the next one
    right[1] = 1; // loads the line,
    left[0]; // which is left's, too
    puts("done");
    return 0;
}
