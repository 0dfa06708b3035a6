#include "sem.h"
// The first thread has no memory any more then, and `/proc` shows no mappings by its number, which is the process's.
static int is_zombie(void) {
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", getpid());
    int f = open(path, O_RDONLY);
    CHECK(f >= 0 && read(f, text, sizeof text - 1) > 0 && close(f) == 0);
    char *end = strrchr(text, ')');
    return end && end[2] == 'Z';
}
static long rewritten(void *at) {
    unsigned char *p = mmap(at, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    long sum = 0;
    for (int i = 0; i < 300; i++) {
        unsigned char c[] = {0xb8, i, i >> 8, 0, 0, 0x83, 0xc0, i % 100, 0xc3};
        memcpy(p, c, sizeof c);
        for (int n = 0; n < 3; n++) sum = sum * 3 % 1000003 + ((int (*)(void))p)();
    }
    return sum;
}
static void *f(void *x) {
    while (!is_zombie()) usleep(1000);
    printf("%ld\n", rewritten(0));
    // So far away that translations are put elsewhere, too.
    printf("%ld\n", rewritten((void *)0x100000000000));
    CHECK(mlockall(MCL_CURRENT) == 0 || errno == ENOMEM || errno == EPERM);
    printf("done\n");
    exit(0);
}
int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); pthread_exit(0); }
