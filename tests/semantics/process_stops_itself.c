#include "sem.h"
int main(void) {
    pid_t p = fork();
    if (p == 0) { raise(SIGTSTP); raise(SIGSTOP); _exit(6); }
    int s;
    for (int i = 0; i < 2; i++) { waitpid(p, &s, WUNTRACED); show_status(s); kill(p, SIGCONT); }
    waitpid(p, &s, 0);
    show_status(s);
}
