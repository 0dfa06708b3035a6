// A loop goes to and fro between two pages that may not be written to; one of them is made writable, rewritten, and made
// executable again, while there is another thread. What is on the other page jumps there directly, as before.
#include "sem.h"
static atomic_int over;
static void *wait_for_it(void *x) {
    while (!over) usleep(1000);
    return x;
}
int main(void) {
    unsigned char *p = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    unsigned char first[] = {
        0x31, 0xc0,                   // xor eax, eax
        0x31, 0xd2,                   // xor edx, edx
        0x83, 0xc0, 0x01,             // again: add eax, 1
        0xe9, 0xf4, 0x0f, 0, 0,       // jmp to the second page
    };
    unsigned char second[] = {
        0x81, 0xc2, 0x02, 0, 0, 0,    // add edx, 2
        0xff, 0xcf,                   // dec edi
        0x0f, 0x85, 0xf6, 0xef, 0xff, 0xff, // jnz again
        0x01, 0xd0,                   // add eax, edx
        0xc3,
    };
    memcpy(p, first, sizeof first);
    memcpy(p + 4096, second, sizeof second);
    CHECK(mprotect(p, 8192, PROT_READ | PROT_EXEC) == 0);
    unsigned (*run)(int) = (unsigned (*)(int))p;
    pthread_t t;
    CHECK(pthread_create(&t, 0, wait_for_it, 0) == 0);
    for (int i = 1; i < 5; i++) {
        CHECK(mprotect(p + 4096, 4096, PROT_READ | PROT_WRITE) == 0);
        p[4096 + 2] = i;
        CHECK(mprotect(p + 4096, 4096, PROT_READ | PROT_EXEC) == 0);
        printf("%u\n", run(5000000));
    }
    over = 1;
    pthread_join(t, 0);
}
