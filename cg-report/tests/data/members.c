// What `members.cachegrind` and `members.mem` were recorded of: an array of structures of which one member is looked at, a list that is
// walked by one pointer, and an array that is walked in steps. See run.mjs for the commands.
#include <stdio.h>
#include <stdlib.h>

enum { PARTICLES = 20000, NODES = 5000, NUMBERS = 60000, ROUNDS = 3 };

struct particle { double at[3]; double speed[3]; double mass; long kind; };
struct node { struct node *next; char name[40]; long value; };

static struct particle particles[PARTICLES];

static double weigh(void) {
    double sum = 0;
    for (int i = 0; i < PARTICLES; i++)
        sum += particles[i].mass;
    return sum;
}

static void move(void) {
    for (int i = 0; i < PARTICLES; i++)
        particles[i].at[1] += particles[i].speed[1];
}

static long walk(const struct node *first) {
    long sum = 0;
    for (const struct node *at = first; at; at = at->next)
        sum += at->value;
    return sum;
}

static double add(const double *numbers) {
    double sum = 0;
    for (int i = 0; i < NUMBERS; i++)
        sum += numbers[i];
    return sum;
}

int main(void) {
    double *numbers = calloc(NUMBERS, sizeof *numbers);
    struct node *first = 0;
    for (int i = 0; i < NODES; i++) {
        struct node *node = calloc(1, sizeof *node);
        node->next = first;
        node->value = i;
        first = node;
    }
    double sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        move();
        sum += weigh() + add(numbers) + walk(first);
    }
    printf("%g\n", sum);
}
