// cc: -O1 -pthread
// Threads map code, run it and unmap it, so that one's code often stands where another one's has just been: the kernel gives an
// address away before the call that has freed it returns.
#include "sem.h"

enum { THREADS = 4, ROUNDS = 700, SIZE = 4096 };
typedef long Code(void);

static void *run(void *arg) {
    long wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned char *code = mmap(0, SIZE, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(code != MAP_FAILED);
        int mine = (int)(long)arg * ROUNDS + round;
        memcpy(code, "\x48\xc7\xc0....\xc3", 8); // mov rax, ...; ret
        memcpy(code + 3, &mine, 4);
        wrong += ((Code *)code)() != mine;
        // What is known of the page must be true of this mapping, too.
        memcpy(code + 3, &(int){-mine}, 4);
        wrong += ((Code *)code)() != -mine;
        CHECK(munmap(code, SIZE) == 0);
    }
    return (void *)wrong;
}

int main(void) {
    pthread_t t[THREADS];
    void *wrong;
    for (long i = 0; i < THREADS; i++) CHECK(pthread_create(&t[i], 0, run, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(t[i], &wrong) == 0);
        printf("%ld\n", (long)wrong);
    }
    return 0;
}
