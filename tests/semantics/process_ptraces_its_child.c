#include "sem.h"
#include <sys/ptrace.h>
#include <sys/user.h>
int main(void) {
    pid_t p = fork();
    if (p == 0) { if (ptrace(PTRACE_TRACEME, 0, 0, 0)) { printf("%s\n", strerror(errno)); fflush(stdout); _exit(1); } raise(SIGSTOP); _exit(5); }
    int s;
    waitpid(p, &s, 0);
    show_status(s);
    if (WIFSTOPPED(s)) { ptrace(PTRACE_CONT, p, 0, 0); waitpid(p, &s, 0); show_status(s); }
}
