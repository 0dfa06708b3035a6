// A thread that blocks a signal which kills sends it to its own group of processes; another thread does not block it: its process is
// dead before the call returns, and so are the others of the group. With an argument: so many times.
#include "sem.h"

static int way;
// While a thread is created its creator blocks everything.
static atomic_int created;
static void *sender(void *arg UNUSED) {
    block_signal(SIGTERM);
    while (!created) {}
    kill(way ? -getpid() : 0, SIGTERM);
    write(1, "still alive\n", 12);
    _exit(1);
}

int main(int argc, char **argv) {
    int times = argc > 1 ? atoi(argv[1]) : 5;
    for (way = 0; way < 2; way++) {
        int died = 0, closed = 0;
        for (int i = 0; i < times; i++) {
            int ends[2], status;
            CHECK(pipe(ends) == 0);
            pid_t child = fork();
            if (child == 0) {
                close(ends[0]);
                CHECK(setpgid(0, 0) == 0);
                if (fork() == 0) for (;;) pause();
                pthread_t t;
                CHECK(pthread_create(&t, 0, sender, 0) == 0);
                created = 1;
                work(1000000000);
                _exit(2);
            }
            close(ends[1]);
            CHECK(waitpid(child, &status, 0) == child);
            died += WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
            // The other one has the pipe open for as long as it lives.
            char c;
            closed += read(ends[0], &c, 1) == 0;
            close(ends[0]);
        }
        printf("way %d: %s, %s\n", way, died == times ? "all died" : "some lived", closed == times ? "with their groups" : "alone");
    }
    return 0;
}
