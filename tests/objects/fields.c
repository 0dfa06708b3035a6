// cc: -O1
// Follows a list whose nodes have two lines each, and looks at the second one of every fourth; adds up what lies in the middle of the
// entries of a table.
#include <stdio.h>
#include <stdlib.h>

enum { NODES = 20000, PASSES = 3, ENTRIES = 8 };

struct node {
    struct node *next;
    char name[64];
    long value;
    char rest[48];
};

// Of one line each.
static volatile struct {
    char line[64];
} wide[ENTRIES] __attribute__((aligned(64)));

int main(void) {
    struct node *all = 0, **last = &all;
    for (int i = 0; i < NODES; i++) {
        struct node *node = aligned_alloc(128, sizeof *node); // node
        node->next = 0;
        node->value = i;
        *last = node;
        last = &node->next;
    }
    long sum = 0;
    for (int pass = 0; pass < PASSES; pass++) {
        int n = 0;
        for (struct node *node = all; node; node = node->next)
            if (n++ % 4 == 0)
                sum += node->value;
        for (int i = 0; i < ENTRIES; i++)
            sum += wide[i].line[24];
    }
    printf("%ld\n", sum);
    return 0;
}
