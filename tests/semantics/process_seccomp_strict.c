#include "sem.h"
#include <linux/seccomp.h>
#include <sys/prctl.h>
int main(void) {
    pid_t p = fork();
    if (p == 0) { prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT); write(1, "in\n", 3); syscall(SYS_getpid); write(1, "no\n", 3); }
    int s;
    waitpid(p, &s, 0);
    show_status(s);
}
