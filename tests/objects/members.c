// cc: -O1
// Goes over arrays of structures of one line each, member by member; what it touches where, it says by itself, a line each: the object, the
// member, and how often. What is allocated where the line does not say what it is has no members.
#include <stdio.h>
#include <stdlib.h>

enum { MANY = 20000, PASSES = 3 };

struct key {
    long hash;
    int length;
};

typedef struct {
    struct key key;
    union {
        double number;
        char *text;
    } value;
    struct {
        short x, y;
    } at[4];
    unsigned low : 4, high : 12;
    int count;
} __attribute__((aligned(64))) entry_t;

static entry_t entries[MANY];

struct node {
    long value;
    struct node *next;
    char rest[48];
};

struct base {
    long kind;
    long more[7];
};

struct derived {
    struct base base;
    long own[8];
};

static void *take(size_t size) {
    void *got = 0;
    return posix_memalign(&got, 64, size) ? 0 : got;
}

#define EACH(what) for (volatile int pass = 0; pass < PASSES; pass++) for (int i = 0; i < MANY; i++) what

int main(void) {
    long sum = 0;
    volatile entry_t *table = entries;
    EACH(sum += table[i].key.length);
    EACH(sum += table[i].value.number != 0);
    EACH(sum += table[i].at[i % 4].y);
    EACH(table[i].count = i);
    EACH(sum += table[i].high);

    entry_t *copies = aligned_alloc(64, MANY * sizeof *copies); // copies
    volatile entry_t *copy = copies;
    EACH(copy[i].key.hash = i);
    EACH(sum += copy[i].at[i % 4].x);

    static struct node *nodes[MANY];
    for (int i = 0; i < MANY; i++) {
        struct node *node = aligned_alloc(64, sizeof(struct node)); // node
        node->value = i;
        nodes[(long)i * 7919 % MANY] = node;
    }
    EACH(sum += ((volatile struct node *)nodes[i])->value);

    size_t sizes[] = {sizeof(struct base), sizeof(struct derived)};
    struct base *bases[2000];
    for (int i = 0; i < 2000; i++) {
        struct base *base = aligned_alloc(64, sizes[i >= 1000]); // two sizes
        base->kind = i;
        bases[i] = base;
    }
    struct base *whole = aligned_alloc(64, 100 * sizeof(struct derived)); // another structure
    struct base *hidden = take(64 * 1000); // hidden
    for (volatile int pass = 0; pass < PASSES; pass++)
        for (int i = 0; i < 1000; i++)
            sum += ((volatile struct base *)hidden)[i].kind + ((volatile struct base *)bases[i])->kind
                   + ((volatile struct base *)whole)[i % 100].kind;
    printf("%d\n", sum != 0);
    return 0;
}
