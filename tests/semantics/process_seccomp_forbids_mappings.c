// cc: -lm
// A program that forbids itself to create mappings and files, and goes on to code that it has not run before.
#include "sem.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <math.h>
#include <stddef.h>
#include <sys/prctl.h>
typedef int (*fn)(int);
int main(void) {
    // Far away from everything else, and writable.
    unsigned char *far = mmap((void *)0x100000000000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(far != MAP_FAILED);
    memcpy(far, (unsigned char[]){0x8d, 0x47, 0x05, 0xc3}, 4);
    printf("before\n");
    fflush(stdout);
    int forbidden[] = {SYS_mmap, SYS_mprotect, SYS_memfd_create, SYS_open, SYS_openat, SYS_personality, SYS_madvise};
    struct sock_filter f[32];
    int n = 0;
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < sizeof forbidden / sizeof *forbidden; i++) {
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, forbidden[i], 0, 1);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    }
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog g = {n, f};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &g) == 0);
    printf("%d\n", ((fn)far)(1));
    far[2] = 6;
    printf("%d\n", ((fn)far)(1));
    char text[64];
    snprintf(text, sizeof text, "%.17g %s", sqrt(work(100) % 1000), strerror(EPERM));
    puts(text);
    fflush(stdout);
    pid_t p = fork();
    if (!p) {
        far[2] = 7;
        printf("child %d\n", ((fn)far)(1));
        fflush(stdout);
        _exit(3);
    }
    int s;
    wait(&s);
    show_status(s);
    printf("%d\n", ((fn)far)(1));
    fflush(stdout);
    // It is really forbidden.
    syscall(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("not reached\n");
}
