// A program that locks all its memory locks its own only.
#include "sem.h"
static long locked(void) {
    char line[200];
    long kb = -1;
    FILE *f = fopen("/proc/self/status", "r");
    CHECK(f != 0);
    while (fgets(line, sizeof line, f)) sscanf(line, "VmLck: %ld", &kb);
    fclose(f);
    return kb;
}
int main(void) {
    char *p = mmap(0, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    int r = mlockall(MCL_CURRENT);
    printf("%d %d\n", r, r ? errno : 0);
    if (r == 0) printf("%d\n", locked() >= 4096 && locked() < 300000);
    unsigned char in[1024];
    if (r == 0) CHECK(mincore(p, 4 << 20, in) == 0);
    int n = 0;
    for (int i = 0; r == 0 && i < 1024; i++) n += in[i] & 1;
    printf("%d pages\n", n);
    printf("%d\n", munlockall());
    if (r == 0) printf("%ld\n", locked());
    r = mlockall(64);
    printf("%d %d\n", r, errno);
}
