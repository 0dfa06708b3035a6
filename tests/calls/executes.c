// A program that executes itself: "outside" its window of instrumentation and "within" it, by fork and exec, by posix_spawn, and "last" in
// its own place. What is executed works and ends, wherever it came from.
#include <callgrind.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile long sink;
__attribute__((noinline)) static void work(long n) { while (n-- > 0) sink += n; }
static int by_fork(char *self, char *name)
{
    pid_t child = fork();
    if (child == 0) {
        execl(self, self, name, (char *)0);
        _exit(9);
    }
    int status;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}
static int by_spawn(char *self, char *name)
{
    char *argv[] = {self, name, 0};
    pid_t child;
    int status;
    return posix_spawn(&child, self, 0, 0, argv, (char *[]){0}) == 0 && waitpid(child, &status, 0) == child && status == 0;
}
int main(int argc, char **argv)
{
    if (argc > 1) {
        work(strcmp(argv[1], "last") ? 1000 : 2000);
        return 0;
    }
    if (!by_fork(argv[0], "outside") || !by_spawn(argv[0], "outside")) return 1;
    CALLGRIND_START_INSTRUMENTATION;
    work(10);
    if (!by_fork(argv[0], "within") || !by_spawn(argv[0], "within")) return 2;
    CALLGRIND_STOP_INSTRUMENTATION;
    if (!by_fork(argv[0], "outside")) return 3;
    CALLGRIND_START_INSTRUMENTATION;
    execl(argv[0], argv[0], "last", (char *)0);
    return 4;
}
