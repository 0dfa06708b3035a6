// System calls that a filter traps: the handler sees which call it was, and where, and gives it a result of its own.
#include "int80.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
static volatile int traps;
static void handler(int sig, siginfo_t *i, void *context) {
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    int here = (greg_t)i->si_call_addr == r[REG_RIP];
    const unsigned char *before = (const unsigned char *)r[REG_RIP] - 2;
    traps++;
    printf("%d %d %d %x %d %02x%02x %lld\n", sig, i->si_code, i->si_syscall, i->si_arch, here, before[0], before[1], (long long)r[REG_RAX]);
    r[REG_RAX] = 4711;
}
int main(void) {
    on(SIGSYS, handler, 0);
    // getppid is 110 in one table and 64 in the other, which is semget in the first.
    struct sock_filter f[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                              BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 3, 0),
                              BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NR_GETPPID, 0, 3),
                              BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
                              BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_I386, 0, 1),
                              BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog g = {7, f};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &g) == 0);
    for (int i = 0; i < 3; i++) printf("%ld\n", syscall(SYS_getppid));
    printf("%d\n", int80(NR_GETPPID, 0, 0, 0, 0, 0));
    printf("%d %d\n", getpid() > 0, traps);
}
