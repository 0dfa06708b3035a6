// A process that may open nothing more forks, changes its code, computes, and executes itself. (What it executes cannot be loaded,
// since that takes a descriptor.)
#include "sem.h"
#include <sys/mman.h>
#include <sys/resource.h>

static int (*made)(void);
static unsigned char *code;

// Code that returns `n`, in the place of what was there.
static void make(int n) {
    unsigned char text[] = {0xb8, (unsigned char)n, 0, 0, 0, 0xc3};
    memcpy(code, text, sizeof text);
}

static void compute(void) {
    for (int i = 0; i < 200; i++) {
        make(i % 100);
        CHECK(made() == i % 100);
    }
    printf("%lx\n", work(300000));
    fflush(stdout);
}

int main(void) {
    setvbuf(stdout, 0, _IONBF, 0);
    code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(code != MAP_FAILED);
    memcpy(&made, &code, sizeof made);
    compute();
    struct rlimit r = {16, 32};
    CHECK(setrlimit(RLIMIT_NOFILE, &r) == 0);
    while (open("/dev/null", O_RDONLY) >= 0) {}
    CHECK(errno == EMFILE);
    // The limit may be below what is open already, and no higher one allowed.
    for (int i = 0; i < 2; i++) {
        struct rlimit lower = {8, i == 0 ? 32 : 8};
        CHECK(setrlimit(RLIMIT_NOFILE, &lower) == 0);
        pid_t child = fork();
        if (child == 0) {
            compute();
            CHECK(open("/dev/null", O_RDONLY) == -1 && errno == EMFILE);
            if (i == 0) {
                char *args[] = {"/proc/self/exe", 0};
                execv(args[0], args);
            }
            _exit(3);
        }
        compute();
        int s;
        CHECK(waitpid(child, &s, 0) == child);
        printf("%d\n", WEXITSTATUS(s));
    }
    getrlimit(RLIMIT_NOFILE, &r);
    printf("%ld %ld\n", (long)r.rlim_cur, (long)r.rlim_max);
    return 0;
}
