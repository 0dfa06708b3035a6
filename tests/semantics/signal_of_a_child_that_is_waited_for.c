// Who waits for a child is told that it has ended, though the signal of that, which has a handler and restarts nothing, has come
// in the same moment: the kernel looks for ended children first.
#include "sem.h"
#include <sys/wait.h>

enum { CHILDREN = 60 };
static volatile sig_atomic_t signals;

// (Somebody else may have sent one just before it had a handler.)
static void on_child(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    signals += info->si_code == CLD_EXITED;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGCHLD, &action, NULL) == 0);
    int interrupted = 0, wrong = 0;
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            for (volatile int k = 0; k < i % 7 * 2000; k++) {
            }
            _exit(i);
        }
        int status = 0;
        pid_t ended;
        while ((ended = waitpid(child, &status, 0)) < 0 && errno == EINTR)
            interrupted++;
        wrong += ended != child || !WIFEXITED(status) || WEXITSTATUS(status) != i;
    }
    printf("interrupted %d, wrong %d, signals %d\n", interrupted, wrong, signals == CHILDREN);
    return 0;
}
