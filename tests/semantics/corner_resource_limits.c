#include "sem.h"
#include <sys/resource.h>
int main(void) {
    struct rlimit r = {16, 16};
    CHECK(setrlimit(RLIMIT_NOFILE, &r) == 0);
    int n = 0;
    while (open("/dev/null", O_RDONLY) >= 0) n++;
    printf("%d %s\n", n, strerror(errno));
    getrlimit(RLIMIT_NOFILE, &r);
    printf("%ld\n", (long)r.rlim_cur);
    if (fork() == 0) { struct rlimit c = {1, 1}; setrlimit(RLIMIT_CPU, &c); for (;;) work(1000); }
    int s;
    wait(&s);
    printf("%d\n", WIFSIGNALED(s));
}
