#include "sem.h"
int main(void) {
    if (fork() == 0) { for (int i = 0; i < 1024; i++) close(i); int f = open("out", O_RDWR | O_CREAT, 0600); write(f, &f, 4); _exit(f); }
    int s;
    wait(&s);
    show_status(s);
    for (int i = 3; i < 20; i++) if (fcntl(i, F_GETFD) >= 0) printf("%d is open\n", i);
    printf("%d\n", open("/dev/null", O_RDONLY));
}
