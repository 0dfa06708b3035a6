#include "sem.h"
int main(int argc, char **argv) {
    char b[4096];
    int n = readlink("/proc/self/exe", b, sizeof b);
    printf("%d\n", n > 0 && !strncmp(b, argv[0], n));
    FILE *f = fopen("/proc/self/cmdline", "r");
    n = fread(b, 1, sizeof b, f);
    printf("%d\n", n == (int)strlen(argv[0]) + 1 && !strcmp(b, argv[0]));
    int m = open("/proc/self/mem", O_RDWR);
    static volatile int x = 5;
    int y = 6;
    CHECK(pwrite(m, &y, 4, (long)&x) == 4);
    printf("%d\n", x);
    f = fopen("/proc/self/maps", "r");
    int own = 0;
    while (fgets(b, sizeof b, f)) { unsigned long lo, hi; char p[5]; sscanf(b, "%lx-%lx %4s", &lo, &hi, p); if ((unsigned long)main >= lo && (unsigned long)main < hi) own = p[2] == 'x'; }
    printf("%d\n", own);
}
