// Children and images that come of the other table's system calls.
#include "int80.h"
int main(int argc, char **argv) {
    int s;
    if (argc > 1) return printf("%s %d\n", argv[1], argc), 5;
    pid_t p = int80(NR_FORK, 0, 0, 0, 0, 0);
    if (p == 0) _exit(work(1000) == 0 ? 1 : 4);
    CHECK(p > 0 && waitpid(p, &s, 0) == p);
    show_status(s);
    p = int80(NR_VFORK, 0, 0, 0, 0, 0);
    if (p == 0) _exit(6);
    CHECK(p > 0 && waitpid(p, &s, 0) == p);
    show_status(s);
    printf("%d\n", int80(NR_GETPPID, 0, 0, 0, 0, 0) == getppid());
    char *path = low();
    int *args = low();
    strcpy(path, "/nowhere");
    args[0] = (int)(long)path, args[1] = (int)(long)strcpy(path + 100, "again"), args[2] = 0;
    printf("%d\n", int80(NR_EXECVE, (long)path, (long)args, 0, 0, 0));
    strcpy(path, "/proc/self/exe");
    fflush(stdout);
    int80(NR_EXECVE, (long)path, (long)args, 0, 0, 0);
    return 99;
}
