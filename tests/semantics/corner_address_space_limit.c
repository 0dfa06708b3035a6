// RLIMIT_AS is what the program set, and stops it where it says; also in children, after exec, and by whatever number a process calls itself.
#include "sem.h"
#include <sys/resource.h>
static void show(const char *what) {
    struct rlimit r;
    CHECK(getrlimit(RLIMIT_AS, &r) == 0);
    printf("%s: %ld %ld\n", what, (long)r.rlim_cur >> 20, (long)r.rlim_max >> 20);
}
static int megabytes(void) {
    int n = 0;
    while (n < 4000 && mmap(0, 16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) n += 16;
    return n;
}
// By its number, and by that of another of its threads, which are others in a namespace of its own.
static void *by_number(void *arg) {
    int number = arg ? getpid() : gettid();
    struct rlimit r = {600 << 20, 1024 << 20}, old;
    CHECK(prlimit(number, RLIMIT_AS, &r, &old) == 0 && old.rlim_cur == 512 << 20);
    CHECK(prlimit(number, RLIMIT_AS, 0, &old) == 0 && old.rlim_cur == 600 << 20);
    r.rlim_cur = 512 << 20;
    CHECK(prlimit(0, RLIMIT_AS, &r, &old) == 0 && old.rlim_cur == 600 << 20);
    return arg;
}
static void by_numbers(void) {
    pthread_t t;
    by_number("");
    CHECK(pthread_create(&t, 0, by_number, 0) == 0 && pthread_join(t, 0) == 0);
}
int main(int argc, char **argv) {
    if (argc > 1) {
        show("after exec");
        int n = megabytes();
        printf("%d\n", n > 400 && n < 520);
        return 0;
    }
    struct rlimit r = {512 << 20, 1024 << 20}, old;
    CHECK(setrlimit(RLIMIT_AS, &r) == 0);
    show("set");
    struct rlimit wrong = {2, 1};
    int bad = setrlimit(RLIMIT_AS, &wrong);
    printf("%d %d\n", bad, errno);
    CHECK(prlimit(0, RLIMIT_AS, 0, &old) == 0 && old.rlim_cur == r.rlim_cur);
    fflush(stdout);
    if (fork() == 0) {
        show("child");
        int n = megabytes();
        printf("%d\n", n > 400 && n < 520);
        r.rlim_cur = 1024 << 20;
        CHECK(setrlimit(RLIMIT_AS, &r) == 0);
        n += megabytes();
        printf("%d\n", n > 900 && n < 1040);
        exit(0);
    }
    int s;
    wait(&s);
    show_status(s);
    by_numbers();
    fflush(stdout);
    if (fork() == 0) {
        if (geteuid() != 0 && unshare(CLONE_NEWUSER) != 0) exit(0);
        CHECK(unshare(CLONE_NEWPID) == 0);
        if (fork() == 0) by_numbers(), exit(0);
        wait(&s);
        show_status(s);
        exit(0);
    }
    wait(&s);
    show_status(s);
    fflush(stdout);
    if (fork() == 0) {
        execl("/proc/self/exe", argv[0], "again", (char *)0);
        _exit(1);
    }
    wait(&s);
    show_status(s);
    fflush(stdout);
    // Not by system(3): that ignores signals for a while, and whoever sends what is ignored may come too late.
    if (fork() == 0) {
        execl("/bin/sh", "sh", "-c", "ulimit -v", (char *)0);
        _exit(1);
    }
    wait(&s);
    return s;
}
