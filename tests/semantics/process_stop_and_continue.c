#include "sem.h"
int main(void) {
    pid_t p = fork();
    if (p == 0) { for (volatile int i = 0;; i++) work(100); }
    int s;
    for (int i = 0; i < 3; i++) {
        kill(p, SIGSTOP);
        CHECK(waitpid(p, &s, WUNTRACED) == p);
        show_status(s);
        kill(p, SIGCONT);
        CHECK(waitpid(p, &s, WCONTINUED) == p);
        show_status(s);
    }
    kill(p, SIGTERM);
    waitpid(p, &s, 0);
    show_status(s);
}
