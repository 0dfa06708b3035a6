#include "sem.h"
int main(void) {
    volatile int x = 1;
    pid_t p = vfork();
    if (p == 0) { x = 2; _exit(7); }
    int s;
    waitpid(p, &s, 0);
    printf("%d\n", x);
    show_status(s);
    p = vfork();
    if (p == 0) { execl("/bin/echo", "echo", "hello", (char *)0); _exit(1); }
    waitpid(p, &s, 0);
    show_status(s);
}
