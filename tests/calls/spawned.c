// Creates processes and threads in windows of two parts, and says which: by fork, by posix_spawn of itself, and a thread.
// What it works before the first fork is its argument.
#define _GNU_SOURCE
#include <callgrind.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile long sink;
__attribute__((noinline)) static void work(long n) { while (n-- > 0) sink += n; }
static void say(const char *what, pid_t id) { dprintf(1, "%s %d\n", what, (int)id); }
static void end(pid_t child)
{
    int status;
    if (waitpid(child, &status, 0) != child || status) _exit(8);
}
static void by_fork(const char *name)
{
    pid_t child = fork();
    if (child == 0) {
        work(100);
        _exit(0);
    }
    end(child);
    say(name, child);
}
static void by_spawn(char *self, const char *name)
{
    char *argv[] = {self, 0};
    pid_t child;
    if (posix_spawn(&child, self, 0, 0, argv, (char *[]){0})) _exit(9);
    end(child);
    say(name, child);
}
static void *thread(void *unused)
{
    work(300);
    say("thread", gettid());
    return unused;
}
int main(int argc, char **argv)
{
    if (argc < 2) {
        work(200);
        return 0;
    }
    pthread_t other;
    CALLGRIND_START_INSTRUMENTATION;
    work(atol(argv[1]));
    CALLGRIND_ADD_DESC("described: here");
    by_fork("first");
    say("main", gettid());
    CALLGRIND_DUMP_STATS_AT("one");
    by_fork("second");
    by_spawn(argv[0], "third");
    if (pthread_create(&other, 0, thread, 0) || pthread_join(other, 0)) return 1;
    CALLGRIND_DUMP_STATS_AT("two");
    work(10);
    CALLGRIND_STOP_INSTRUMENTATION;
    return 0;
}
