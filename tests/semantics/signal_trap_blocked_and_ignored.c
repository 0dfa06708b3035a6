// A program may block, ignore and handle SIGTRAP, whatever a profiler needs it for.
#include "sem.h"

static volatile int traps;
static void handler(int sig UNUSED, siginfo_t *info, void *context) {
    ucontext_t *uc = context;
    traps++;
    printf("trap %d from a process %d, blocked before %d\n", traps, info->si_code <= 0,
           sigismember(&uc->uc_sigmask, SIGTRAP));
}
static void *thread(void *arg) { return arg; }

int main(void) {
    sigset_t trap, all, old;
    sigemptyset(&trap);
    sigaddset(&trap, SIGTRAP);
    on(SIGTRAP, handler, 0);
    // A thread is created with all signals blocked; the handler must survive it.
    pthread_t t;
    CHECK(pthread_create(&t, 0, thread, 0) == 0);
    pthread_join(t, 0);
    raise(SIGTRAP);
    // Blocked: it waits.
    CHECK(sigprocmask(SIG_BLOCK, &trap, 0) == 0);
    work(100000);
    raise(SIGTRAP);
    printf("blocked: %d traps\n", traps);
    CHECK(sigprocmask(SIG_BLOCK, 0, &old) == 0);
    printf("seen as blocked: %d\n", sigismember(&old, SIGTRAP));
    CHECK(sigprocmask(SIG_UNBLOCK, &trap, 0) == 0);
    printf("unblocked: %d traps\n", traps);
    // All signals blocked across new code.
    sigfillset(&all);
    CHECK(sigprocmask(SIG_SETMASK, &all, &old) == 0);
    char text[64];
    snprintf(text, sizeof text, "%.3f", 1.5 * traps);
    CHECK(sigprocmask(SIG_SETMASK, &old, 0) == 0);
    __asm__ volatile("int3");
    printf("%s, after int3: %d traps\n", text, traps);
    // Ignored: nothing happens, and it is seen.
    signal(SIGTRAP, SIG_IGN);
    raise(SIGTRAP);
    struct sigaction now;
    CHECK(sigaction(SIGTRAP, 0, &now) == 0);
    printf("ignored: %d, %d traps\n", now.sa_handler == SIG_IGN, traps);
    // So it is in a child, and after exec.
    fflush(stdout);
    pid_t p = fork();
    if (!p) {
        raise(SIGTRAP);
        execl("/bin/sh", "sh", "-c", "kill -TRAP $$; echo survived", (char *)0);
        _exit(1);
    }
    int status;
    CHECK(waitpid(p, &status, 0) == p);
    show_status(status);
    // The default kills.
    signal(SIGTRAP, SIG_DFL);
    fflush(stdout);
    raise(SIGTRAP);
    return 0;
}
