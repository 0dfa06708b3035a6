// What a program that is executed inherits of blocked and ignored signals, SIGTRAP above all; and what the program sees itself.
#include "sem.h"

static void none(int sig UNUSED) {}

static void go_on(void) {
    char *const argv[] = {"executed", 0};
    execv("/proc/self/exe", argv);
    _exit(97);
}
// What the executed program sees.
static int shows(void) {
    sigset_t blocked;
    struct sigaction trap;
    CHECK(sigprocmask(SIG_BLOCK, 0, &blocked) == 0);
    CHECK(sigaction(SIGTRAP, 0, &trap) == 0);
    printf("inherited: trap %d, usr2 %d, ignored %d\n", sigismember(&blocked, SIGTRAP), sigismember(&blocked, SIGUSR2),
           trap.sa_handler == SIG_IGN);
    return 0;
}
static void from_handler(int sig UNUSED) { go_on(); }
static void changes_mask(int sig UNUSED, siginfo_t *info UNUSED, void *context) {
    sigaddset(&((ucontext_t *)context)->uc_sigmask, SIGTRAP);
}

// Blocks `set`, and runs code that nothing has run before.
static void block(const sigset_t *set) {
    sigset_t now;
    CHECK(sigprocmask(SIG_SETMASK, set, 0) == 0);
    char text[64];
    snprintf(text, sizeof text, "%.3e", 1.0 * getpid());
    CHECK(sigprocmask(SIG_BLOCK, 0, &now) == 0);
    printf("blocked: %d\n", sigismember(&now, SIGTRAP));
    fflush(stdout);
}

static void *thread(void *set) {
    block(set);
    go_on();
    return 0;
}

static void attempt(int which) {
    sigset_t trap, all, old;
    sigemptyset(&trap);
    sigaddset(&trap, SIGTRAP);
    sigfillset(&all);
    struct sigaction a = {.sa_handler = from_handler};
    pthread_t t;
    switch (which) {
    case 0: break;
    case 1: block(&trap); break;
    case 2: block(&all); break;
    case 3: signal(SIGTRAP, SIG_IGN); block(&all); break;
    case 4: signal(SIGTRAP, none); block(&trap); break;
    case 5: signal(SIGTRAP, SIG_IGN); break;
    case 6: block(&all); sigemptyset(&all); block(&all); break;
    case 7: // Within a handler that blocks all.
        sigfillset(&a.sa_mask);
        CHECK(sigaction(SIGUSR1, &a, 0) == 0);
        raise(SIGUSR1);
        break;
    case 8: // A handler's frame says it.
        on(SIGUSR1, changes_mask, 0);
        raise(SIGUSR1);
        break;
    case 9: // Inherited by a thread, and from a thread.
        CHECK(pthread_create(&t, 0, thread, &trap) == 0);
        pthread_join(t, 0);
        break;
    case 10: // By a child.
        block(&trap);
        if (fork()) {
            wait(0);
            _exit(0);
        }
        break;
    case 11: // It waits, and comes only when it may: no handler, so it kills.
        block(&trap);
        raise(SIGTRAP);
        printf("still there\n");
        fflush(stdout);
        CHECK(sigprocmask(SIG_UNBLOCK, &trap, 0) == 0);
        printf("not dead\n");
        break;
    case 12: // For a moment, as threads are created.
        CHECK(sigprocmask(SIG_BLOCK, &all, &old) == 0);
        work(1000);
        CHECK(sigprocmask(SIG_SETMASK, &old, 0) == 0);
        raise(SIGTRAP);
        break;
    }
    go_on();
}

int main(int argc UNUSED, char **argv) {
    if (strcmp(argv[0], "executed") == 0) return shows();
    for (int which = 0; which < 13; which++) {
        printf("case %d\n", which);
        fflush(stdout);
        pid_t p = fork();
        CHECK(p >= 0);
        if (!p) attempt(which);
        int status;
        CHECK(waitpid(p, &status, 0) == p);
        show_status(status);
    }
    return 0;
}
