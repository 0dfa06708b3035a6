#include "sem.h"
int main(int argc, char **argv) {
    if (argc > 1 && argv[1][0] == '5') return printf("end %s\n", argv[1]), 12;
    char n[2] = {argc > 1 ? argv[1][0] + 1 : '1', 0};
    printf("%s\n", n), fflush(stdout);
    pid_t p = fork();
    if (p == 0) execl("/proc/self/exe", argv[0], n, (char *)0);
    int s;
    waitpid(p, &s, 0);
    show_status(s);
    return WEXITSTATUS(s);
}
