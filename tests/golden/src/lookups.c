// Asks a table for numbers by their hashes, and follows a list whose nodes lie in no order.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SLOTS (1 << 17)
#define NODES 50000

struct slot {
    uint64_t key;
    uint64_t value;
};

struct node {
    struct node *next;
    long value[3];
};

static uint64_t state = 1;

static uint64_t number(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

static uint64_t place(uint64_t key)
{
    return (key * 0x9e3779b97f4a7c15u) >> 47;
}

int main(void)
{
    struct slot *table = calloc(SLOTS, sizeof *table);
    for (int i = 0; i < SLOTS / 2; i++) {
        uint64_t key = number() | 1;
        table[place(key)] = (struct slot){key, i};
    }
    uint64_t found = 0;
    for (int i = 0; i < 500000; i++) {
        uint64_t key = number() | 1;
        if (table[place(key)].key == key)
            found++;
    }
    static struct node *nodes[NODES];
    for (int i = 0; i < NODES; i++) {
        struct node *node = malloc(sizeof *node);
        node->value[0] = i;
        nodes[i] = node;
    }
    for (int i = NODES - 1; i > 0; i--) {
        int other = number() % (i + 1);
        struct node *node = nodes[i];
        nodes[i] = nodes[other];
        nodes[other] = node;
    }
    for (int i = 0; i < NODES; i++)
        nodes[i]->next = i + 1 < NODES ? nodes[i + 1] : NULL;
    long sum = 0;
    for (const struct node *node = nodes[0]; node; node = node->next)
        sum += node->value[0];
    printf("%lu %ld\n", (unsigned long)found, sum);
    return 0;
}
