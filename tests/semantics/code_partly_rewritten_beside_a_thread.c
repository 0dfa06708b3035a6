// A loop lies across a page's end; what is on the second page is rewritten, while there is another thread. The first part
// of the loop runs on into the second without a branch: it must not take forever to get there.
#include "sem.h"
static atomic_int over;
static void *wait_for_it(void *x) {
    while (!over) usleep(1000);
    return x;
}
int main(void) {
    unsigned char *p = mmap(0, 8192, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    unsigned char code[] = {
        0x31, 0xc0,                         // xor eax, eax
        0x31, 0xd2,                         // xor edx, edx
        0x83, 0xc0, 0x01,                   // again: add eax, 1
        0x83, 0xc2, 0x05,                   // within: add edx, 5
        0x0f, 0x1f, 0x80, 0, 0, 0, 0,       // nop of seven bytes
        0x81, 0xc2, 0x02, 0, 0, 0,          // add edx, 2: the page ends before its number
        0x85, 0xff,                         // test edi, edi
        0x78, 0xec,                         // js within: never
        0xff, 0xcf,                         // dec edi
        0x75, 0xe5,                         // jnz again
        0x01, 0xd0,                         // add eax, edx
        0xc3,
    };
    unsigned char *f = p + 4096 - 19;
    memcpy(f, code, sizeof code);
    unsigned (*run)(int) = (unsigned (*)(int))f;
    pthread_t t;
    CHECK(pthread_create(&t, 0, wait_for_it, 0) == 0);
    for (int i = 1; i < 4; i++) {
        f[19] = i;
        printf("%u\n", run(1000));
        f[19] = i + 10;
        printf("%u\n", run(5000000));
    }
    over = 1;
    pthread_join(t, 0);
}
