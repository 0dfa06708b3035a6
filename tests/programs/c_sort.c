// cc: -O2
// Quick sort, heap sort and a binary tree at -O2: ordinary compiled code.
#include "rt.h"
static u32 state = 12345;
static u32 next(void) { return state = state * 1664525 + 1013904223; }
__attribute__((noinline)) static void quick(u32 *a, long n) {
    while (n > 1) {
        u32 pivot = a[n / 2];
        long i = 0, j = n - 1;
        for (;; i++, j--) {
            while (a[i] < pivot) i++;
            while (a[j] > pivot) j--;
            if (i >= j) break;
            u32 t = a[i];
            a[i] = a[j];
            a[j] = t;
        }
        quick(a, i);
        a += i;
        n -= i;
    }
}
__attribute__((noinline)) static void sift(u32 *a, long i, long n) {
    for (long c; (c = 2 * i + 1) < n; i = c) {
        if (c + 1 < n && a[c + 1] > a[c]) c++;
        if (a[i] >= a[c]) return;
        u32 t = a[i];
        a[i] = a[c];
        a[c] = t;
    }
}
struct node {
    struct node *left, *right;
    u32 key;
} nodes[500];
__attribute__((noinline)) static u64 walk(struct node *n) { return n ? hash(walk(n->left), n->key) + walk(n->right) : 7; }
int run(i64 *stack) {
    static u32 a[800], b[800];
    for (int i = 0; i < 800; i++) a[i] = next(), b[i] = next();
    quick(a, 800);
    for (long i = 399; i >= 0; i--) sift(b, i, 800);
    for (long n = 799; n > 0; n--) {
        u32 t = b[0];
        b[0] = b[n];
        b[n] = t;
        sift(b, 0, n);
    }
    struct node *root = 0;
    for (int i = 0; i < 500; i++) {
        struct node **p = &root;
        nodes[i].key = next();
        while (*p) p = nodes[i].key < (*p)->key ? &(*p)->left : &(*p)->right;
        *p = &nodes[i];
    }
    u64 h = walk(root);
    for (int i = 0; i < 800; i++) h = hash(hash(h, a[i]), b[i]);
    print("sum", h);
    return 3;
}
