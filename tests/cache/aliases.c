// cc: -O2 -gdwarf-4
// Lines whose numbers have the same low bits, as far as a table may tell them apart: some stay in the cache while others of
// the same number of steps of 1 MiB come and go, by single accesses and by neighbouring ones, to one line and to two.
#include "cache.h"
enum { STEP = 1 << 20, STEPS = 6 };
static u8 area[STEPS * STEP + 4096] __attribute__((aligned(4096)));
static u32 x = 2463534242u;
static u32 below(u32 n) {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return (x >> 4) % n;
}
struct fields {
    u64 a, b, c;
} __attribute__((packed));
int run(void) {
    u64 sum = 0;
    for (u32 i = 0; i < 700; i++) {
        volatile u64 *p = (volatile u64 *)(area + below(STEPS) * STEP + below(6) * 64);
        sum += *p;
    }
    for (u32 i = 0; i < 700; i++) {
        volatile u64 *p = (volatile u64 *)(area + below(STEPS) * STEP + below(4) * 4 + 52);
        *p += i;
    }
    for (u32 i = 0; i < 700; i++) {
        volatile struct fields *p = (volatile struct fields *)(area + below(STEPS) * STEP + below(256));
        sum += p->b;
        p->a = sum;
        sum -= p->c;
    }
    for (u32 i = 0; i < 700; i++) {
        // Two groups that contend for the same sets.
        volatile struct fields *p = (volatile struct fields *)(area + below(STEPS) * STEP + below(96));
        volatile struct fields *q = (volatile struct fields *)(area + below(STEPS) * STEP + below(96));
        p->c = q->a;
        sum += p->a + q->c;
        q->b = sum;
    }
    return sum == 1;
}
