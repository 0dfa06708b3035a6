// One context brings lines in, another one finds some of them: each line counts once, by whatever instruction it is found.
#include "cachegrind.h"
#define APART __attribute__((noinline))
enum { LINE = 64, LINES = 128 };
static unsigned char data[LINES * LINE] __attribute__((aligned(4096)));
static volatile unsigned sink;
APART static void load(void) {
    for (unsigned i = 0; i < LINES; i++) sink += ((volatile unsigned char *)data)[i * LINE];
}
// Every line three times.
APART static void touch(unsigned n) {
    for (int round = 0; round < 3; round++)
        for (unsigned i = 0; i < n; i++) sink += ((volatile unsigned char *)data)[i * LINE + 1];
}
// Two lines at a time.
APART static void straddle(unsigned n) {
    for (unsigned i = 0; i + 1 < n; i += 2) sink += *(volatile unsigned short *)(data + i * LINE + LINE - 1);
}
// By one instruction.
APART static void string(unsigned n) {
    unsigned char *to = data;
    unsigned long left = (unsigned long)n * LINE;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(left) : "a"(7) : "memory");
}
#define IN(context, work) do { CG_PUSH_CONTEXT(context); work; CG_POP_CONTEXT(); } while (0)
int main(void) {
    IN(1, load());
    IN(11, touch(10));
    IN(1, load());
    IN(12, touch(100));
    IN(1, load());
    IN(21, straddle(10));
    IN(1, load());
    IN(22, straddle(100));
    IN(1, load());
    IN(31, string(10));
    IN(1, load());
    IN(32, string(100));
    // Nothing is old to whoever has not changed.
    CG_PUSH_CONTEXT(41);
    load();
    CG_PUSH_CONTEXT(41);
    touch(100);
    CG_POP_CONTEXT();
    CG_POP_CONTEXT();
    CG_PUSH_CONTEXT(51);
    load();
    CACHEGRIND_STOP_INSTRUMENTATION;
    CG_PUSH_CONTEXT(52);
    CG_POP_CONTEXT();
    CACHEGRIND_START_INSTRUMENTATION;
    touch(100);
    CG_POP_CONTEXT();
    return 0;
}
