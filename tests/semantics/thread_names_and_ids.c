#include "sem.h"
int main(void) {
    printf("%d\n", getpid() == syscall(SYS_gettid));
    char b[100] = {0};
    FILE *f = fopen("/proc/self/comm", "r");
    CHECK(fgets(b, sizeof b, f));
    printf("%s", b);
}
