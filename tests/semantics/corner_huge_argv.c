#include "sem.h"
int main(int argc, char **argv, char **env) {
    if (argc > 1) { unsigned long n = 0; for (int i = 0; i < argc; i++) n += strlen(argv[i]); return printf("%d %lu\n", argc, n), 0; }
    static char *a[3002], text[500];
    memset(text, 'x', 499);
    a[0] = "self";
    for (int i = 1; i < 3001; i++) a[i] = text;
    fflush(stdout);
    if (fork() == 0) execv("/proc/self/exe", a), _exit(99);
    int s;
    wait(&s);
    show_status(s);
}
