// cc: -mcx16 -O2
#include "sem.h"
struct node { struct node *next; long v; };
static struct head { struct node *p; long tag; } __attribute__((aligned(16))) top;
static atomic_long sum;
static int cas(struct head *h, struct head old, struct head new) {
    char ok;
    __asm__ volatile("lock cmpxchg16b %0\nsetz %1" : "+m"(*h), "=q"(ok), "+a"(old.p), "+d"(old.tag) : "b"(new.p), "c"(new.tag) : "memory", "cc");
    return ok;
}
static void push(struct node *n) { struct head o; do { o = *(volatile struct head *)&top; n->next = o.p; } while (!cas(&top, o, (struct head){n, o.tag + 1})); }
static struct node *pop(void) { struct head o; do { o = *(volatile struct head *)&top; if (!o.p) return 0; } while (!cas(&top, o, (struct head){o.p->next, o.tag + 1})); return o.p; }
static void *f(void *x) { struct node *n = calloc(2000, sizeof *n); for (int i = 0; i < 2000; i++) { n[i].v = i; push(n + i); struct node *p = pop(); if (p) sum += p->v; } return 0; }
int main(void) {
    pthread_t t[4];
    for (int i = 0; i < 4; i++) pthread_create(t + i, 0, f, 0);
    for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
    for (struct node *p; (p = pop());) sum += p->v;
    printf("%ld\n", sum);
}
