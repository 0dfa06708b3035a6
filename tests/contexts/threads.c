// Threads that push nothing follow the one that created them; threads that push have a stack of their own.
#include <pthread.h>
#include <sched.h>
#include "cachegrind.h"
#define APART __attribute__((noinline))
static volatile unsigned long goal, done[2];
APART static void inherited(unsigned n) { for (volatile unsigned i = 0; i < n; i++) ; }
APART static void follows(unsigned n) { for (volatile unsigned i = 0; i < n; i++) ; }
APART static void own(unsigned n) { for (volatile unsigned i = 0; i < n; i++) ; }
static void *simple(void *unused) { (void)unused; inherited(1000); return 0; }
// A worker of a pool, which waits busily, so that only the exact moment of a change tells where its work belongs.
static void *worker(void *index) {
    for (unsigned long round = 1; round <= 20; round++) {
        while (goal < round) sched_yield();
        follows(100);
        done[(long)index] = round;
    }
    return 0;
}
static void *below(void *unused) {
    pthread_t t;
    (void)unused;
    pthread_create(&t, 0, simple, 0);
    pthread_join(t, 0);
    own(10);
    CG_POP_CONTEXT(); // it has none to pop
    CG_PUSH_CONTEXT(50);
    own(10);
    CG_PUSH_CONTEXT(51);
    own(10);
    CG_POP_CONTEXT();
    own(10);
    CG_POP_CONTEXT();
    own(10);
    return 0;
}
int main(void) {
    pthread_t a, b, c;
    CG_PUSH_CONTEXT(1);
    pthread_create(&a, 0, simple, 0);
    pthread_join(a, 0);
    pthread_create(&a, 0, worker, (void *)0);
    pthread_create(&b, 0, worker, (void *)1);
    for (unsigned long round = 1; round <= 20; round++) {
        CG_PUSH_CONTEXT(100 + round % 2);
        goal = round;
        while (done[0] < round || done[1] < round) sched_yield();
        CG_POP_CONTEXT();
    }
    pthread_join(a, 0);
    pthread_join(b, 0);
    CG_PUSH_CONTEXT(2);
    pthread_create(&c, 0, below, 0);
    pthread_join(c, 0);
    CG_POP_CONTEXT();
    CG_POP_CONTEXT();
    inherited(10);
    return 0;
}
