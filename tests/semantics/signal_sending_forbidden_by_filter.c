// A filter of system calls refuses to send signals: nobody dies of what was never sent, and no handler runs.
#include "sem.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

static atomic_int over, came;
static void h(int s UNUSED, siginfo_t *i UNUSED, void *c UNUSED) { came++; }
static pid_t other;
static void *f(void *x UNUSED) {
    atomic_store((_Atomic pid_t *)&other, syscall(SYS_gettid));
    while (!over) work(10);
    return 0;
}
static void show(const char *name, long result) {
    printf("%s: %ld %d\n", name, result, errno);
    errno = 0;
}
int main(void) {
    on(SIGTRAP, h, 0);
    pthread_t t;
    CHECK(pthread_create(&t, 0, f, 0) == 0);
    while (!*(volatile pid_t *)&other) usleep(100);
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kill, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_tgsigqueueinfo, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 55),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
    errno = 0;
    show("to the process", kill(getpid(), SIGTERM));
    show("to the group", kill(0, SIGTERM));
    show("to a thread", syscall(SYS_tgkill, getpid(), other, SIGTERM));
    show("a trap to a thread", syscall(SYS_tgkill, getpid(), other, SIGTRAP));
    siginfo_t info = {.si_code = SI_QUEUE};
    show("a trap that is queued", syscall(SYS_rt_tgsigqueueinfo, getpid(), other, SIGTRAP, &info));
    usleep(2000);
    over = 1;
    pthread_join(t, 0);
    printf("%d came\n", came);
    return 0;
}
