// cc: -O2 -gdwarf-4
// A pointer chase through a shuffled ring that is larger than the caches.
#include "cache.h"
enum { N = 1024 };
static struct node {
    struct node *next;
    u64 pad[7];
} ring[N] __attribute__((aligned(64)));
int run(void) {
    u32 order[N], x = 12345;
    for (u32 i = 0; i < N; i++) order[i] = i;
    for (u32 i = N - 1; i > 0; i--) {
        x = x * 1103515245 + 12345;
        u32 j = (x >> 8) % (i + 1), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    for (u32 i = 0; i < N; i++) ring[order[i]].next = &ring[order[(i + 1) % N]];

    struct node *p = ring;
    for (u32 i = 0; i < 5 * N; i++) p = p->next;
    return p != ring;
}
