#include "sem.h"
int main(void) {
    for (int i = 0; i < 3; i++) if (fork() == 0) { setpgid(0, 0); kill(0, SIGTERM); pause(); }
    for (int s; wait(&s) > 0;) show_status(s);
    pid_t p = fork();
    if (p == 0) pause();
    setpgid(p, p);
    kill(-p, SIGHUP);
    int s;
    waitpid(-p, &s, 0);
    show_status(s);
}
