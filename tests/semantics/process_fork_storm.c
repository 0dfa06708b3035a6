#include "sem.h"
int main(void) {
    int sum = 0;
    for (int i = 0; i < 100; i++) { pid_t p = fork(); if (p == 0) _exit(i % 50); int s; waitpid(p, &s, 0); sum += WEXITSTATUS(s); }
    for (int i = 0; i < 50; i++) if (fork() == 0) _exit(1);
    for (int s; wait(&s) > 0;) sum += WEXITSTATUS(s);
    printf("%d\n", sum);
}
