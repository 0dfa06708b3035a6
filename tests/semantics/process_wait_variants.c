#include "sem.h"
int main(void) {
    siginfo_t i = {0};
    pid_t p = fork();
    if (p == 0) _exit(9);
    CHECK(waitid(P_PID, p, &i, WEXITED | WNOWAIT) == 0);
    printf("%d %d %d\n", i.si_pid == p, i.si_code == CLD_EXITED, i.si_status);
    int s;
    CHECK(wait4(p, &s, 0, 0) == p);
    show_status(s);
    printf("%d %d\n", wait(0), errno == ECHILD);
    p = fork();
    if (p == 0) pause();
    printf("%d\n", waitpid(p, &s, WNOHANG));
    kill(p, SIGKILL);
    waitpid(p, &s, 0);
    show_status(s);
}
