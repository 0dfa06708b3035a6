// What `shared.cachegrind` and `shared.mem` were recorded of: threads that count side by side in one line, a matrix that is turned, and
// a list that is walked. See run.mjs for the commands.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 2, ROUNDS = 20000, SIZE = 600, NODES = 4000 };

struct node { struct node *next; long value[7]; };

static _Alignas(64) long counts[THREADS][4];
static pthread_barrier_t all_are_there;

static void *count(void *number) {
    long me = (long)number;
    pthread_barrier_wait(&all_are_there);
    for (int i = 0; i < ROUNDS; i++)
        counts[me][i % 4]++;
    pthread_barrier_wait(&all_are_there);
    return 0;
}

static long turn(const long *matrix, long *turned) {
    for (int row = 0; row < SIZE; row++)
        for (int column = 0; column < SIZE; column++)
            turned[column * SIZE + row] = matrix[row * SIZE + column];
    return turned[SIZE];
}

static long walk(const struct node *first) {
    long sum = 0;
    for (const struct node *at = first; at; at = at->next)
        sum += at->value[0];
    return sum;
}

int main(void) {
    long *matrix = calloc(SIZE * SIZE, sizeof *matrix);
    long *turned = calloc(SIZE * SIZE, sizeof *turned);
    struct node *first = 0;
    for (int i = 0; i < NODES; i++) {
        struct node *node = calloc(1, sizeof *node);
        node->next = first;
        node->value[0] = i;
        first = node;
    }
    pthread_t threads[THREADS];
    pthread_barrier_init(&all_are_there, 0, THREADS);
    for (long n = 0; n < THREADS; n++)
        pthread_create(&threads[n], 0, count, (void *)n);
    for (int n = 0; n < THREADS; n++)
        pthread_join(threads[n], 0);
    printf("%ld %ld %ld\n", counts[0][0] + counts[1][1], turn(matrix, turned), walk(first));
}
