#include "sem.h"
#include <linux/sched.h>
int main(void) {
    struct clone_args a = {.exit_signal = SIGCHLD};
    long pid = syscall(SYS_clone3, &a, sizeof a);
    if (pid == 0) { printf("child\n"); fflush(stdout); _exit(8); }
    int s;
    CHECK(waitpid(pid, &s, 0) == pid);
    show_status(s);
    printf("%ld %d\n", syscall(SYS_clone3, &a, 8), errno);
}
