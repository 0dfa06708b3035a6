// Tells its registers and what the C library says of its stack, as often as it is told to with another kind of stack (the
// first argument), and waits for its input to end each time.
#define _GNU_SOURCE
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

static int sink;

__attribute__((noinline)) static void tell(void) {
    ucontext_t here;
    void *frames[512];
    getcontext(&here);
    int n = backtrace(frames, 512);
    for (int i = 0; i < 23; i++)
        printf("%llx ", here.uc_mcontext.gregs[i]);
    for (int i = 1; i < n; i++)
        printf("%p ", frames[i]);
    puts("");
    fflush(stdout);
    getchar();
    sink++;
}

__attribute__((noinline)) static int deep(int n) {
    if (n == 0)
        tell();
    else
        sink += deep(n - 1);
    return sink * n;
}

__attribute__((noinline)) static int with_alloca(int n) {
    char *p = __builtin_alloca(n);
    memset(p, n, n);
    tell();
    return p[n / 2];
}

typedef int vector __attribute__((vector_size(64)));
__attribute__((noinline)) static int aligned(int n, ...) {
    volatile vector v = {n};
    tell();
    return v[3] + n;
}

static int compare(const void *a, const void *b) {
    if (sink == 0)
        tell();
    return *(const int *)a - *(const int *)b;
}

static void handler(int s) {
    sink += s;
    tell();
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    int numbers[] = {3, 1, 2, 5, 4};
    if (!strcmp(what, "deep"))
        return deep(100) & 0;
    if (!strcmp(what, "alloca"))
        return with_alloca(argc * 1000) & 0;
    if (!strcmp(what, "aligned"))
        return aligned(argc, 1, 2, 3) & 0;
    if (!strcmp(what, "callback"))
        qsort(numbers, 5, sizeof *numbers, compare);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    if (!strcmp(what, "alternate")) {
        stack_t stack = {.ss_sp = malloc(1 << 20), .ss_size = 1 << 20};
        sigaltstack(&stack, 0);
    }
    if (!strcmp(what, "signal") || !strcmp(what, "alternate")) {
        sigaction(SIGUSR1, &action, 0);
        raise(SIGUSR1);
    }
    if (!strcmp(what, "fault")) {
        sigaction(SIGILL, &action, 0);
        if (argc > 1) {
            __asm__ volatile("ud2");
        }
    }
    return 0;
}
