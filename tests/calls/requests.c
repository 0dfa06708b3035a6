// cc: -O1 -gdwarf-4 -fno-optimize-sibling-calls -I../../include
// What a program says about itself in between: caches stay as they are when collection is switched off, dumps are made or
// costs are set to zero, and are emptied when instrumentation is switched off.
#include "../cache/cache.h"
#include <callgrind.h>
#define NOINLINE __attribute__((noinline, noclone))
enum { WORDS = 4096 };
static u64 words[WORDS];
NOINLINE u64 touch(u64 from, u64 step, u64 n) {
    u64 sum = 0;
    for (u64 i = 0; i < n; i++, from = (from + step) % WORDS) {
        sum += words[from];
        if (sum & 5) words[from] = sum;
    }
    return sum;
}
NOINLINE u64 work(u64 n) { return n == 0 ? touch(0, 8, 100) : work(n - 1) + touch(n * 300, 8, 40); }
NOINLINE u64 stage(u64 n) { return work(n) + touch(7, 31, 20); }
int run(void) {
    u64 sum = stage(2);
    CALLGRIND_DUMP_STATS;
    sum += stage(4);
    CALLGRIND_ZERO_STATS;
    sum += stage(3);
    CALLGRIND_TOGGLE_COLLECT;
    sum += stage(6);
    CALLGRIND_TOGGLE_COLLECT;
    sum += stage(5);
    CALLGRIND_DUMP_STATS_AT("before it stops");
    CALLGRIND_STOP_INSTRUMENTATION;
    sum += stage(7);
    CALLGRIND_START_INSTRUMENTATION;
    sum += stage(1);
    CALLGRIND_STOP_INSTRUMENTATION;
    CALLGRIND_START_INSTRUMENTATION;
    sum += stage(2);
    return sum == 12345;
}
