// cc: -fsplit-stack -O1 -lpthread
// A stack in pieces, made as functions need them.
#include "sem.h"
__attribute__((noinline)) static int deep(int n) {
    volatile char b[2000];
    b[0] = n;
    b[1999] = n;
    if (n == 0) return 0;
    return deep(n - 1) + b[0] - b[1999] + 1;
}
static void *thread(void *arg) { return (void *)(long)deep(3000 + (int)(long)arg); }
int main(void) {
    pthread_t t[4];
    for (long i = 0; i < 4; i++) CHECK(pthread_create(&t[i], 0, thread, (void *)i) == 0);
    long sum = 0;
    for (int i = 0; i < 4; i++) {
        void *r;
        pthread_join(t[i], &r);
        sum += (long)r;
    }
    int alone = deep(3000);
    printf("%ld %d\n", sum, alone);
}
