// A program that puts itself into namespaces of its own: other process numbers, and a child that is their first process.
#include "sem.h"
#include <sys/mount.h>
int main(void) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS) != 0) {
        printf("none here: %d\n", errno);
        return 0;
    }
    fflush(stdout);
    int s;
    pid_t p = fork();
    if (!p) {
        printf("child %d of %d\n", getpid(), getppid());
        fflush(stdout);
        if (fork() == 0) {
            printf("grandchild %d\n", getpid());
            fflush(stdout);
            execl("/bin/echo", "echo", "from another program", (char *)0);
            _exit(1);
        }
        wait(&s);
        show_status(s);
        fflush(stdout);
        if (fork() == 0) {
            volatile int *nowhere = 0;
            *nowhere = 1;
        }
        wait(&s);
        printf("%d\n", WTERMSIG(s));
        fflush(stdout);
        return 4;
    }
    CHECK(waitpid(p, &s, 0) == p);
    show_status(s);
}
