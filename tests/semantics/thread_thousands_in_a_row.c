#include "sem.h"
static void *f(void *x) { return (char *)x + 1; }
int main(void) {
    long n = 0;
    for (long i = 0; i < 3000; i++) { pthread_t t; void *r; CHECK(pthread_create(&t, 0, f, (void *)i) == 0); pthread_join(t, &r); n += (long)r; }
    printf("%ld\n", n);
}
