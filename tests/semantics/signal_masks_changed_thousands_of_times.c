// Programs that change their mask all the time, with SIGTRAP among the signals or without, may still say in the end what they do
// with SIGTRAP, and must then be asked as all others are.
#include "sem.h"
#include <setjmp.h>

static int traps;
static void trap(int sig UNUSED) { traps++; }

int main(void) {
    sigset_t all, none, now;
    sigfillset(&all);
    sigemptyset(&none);
    // Nothing is blocked: what siglongjmp and sigsetjmp do.
    sigjmp_buf env;
    volatile int jumps = 0;
    sigsetjmp(env, 1);
    if (++jumps < 1500) siglongjmp(env, 1);
    printf("jumps %d\n", jumps);
    // Everything is blocked for a moment: what fork and pthread_create do.
    for (int i = 0; i < 1500; i++) {
        CHECK(sigprocmask(SIG_BLOCK, &all, &now) == 0);
        CHECK(!sigismember(&now, SIGUSR1));
        CHECK(sigprocmask(SIG_SETMASK, &none, &now) == 0);
        CHECK(sigismember(&now, SIGUSR1));
    }
    // It minds SIGTRAP after all.
    struct sigaction a = {.sa_handler = trap};
    CHECK(sigaction(SIGTRAP, &a, 0) == 0);
    CHECK(sigprocmask(SIG_BLOCK, &all, 0) == 0);
    kill(getpid(), SIGTRAP);
    printf("blocked: %d traps\n", traps);
    CHECK(sigprocmask(SIG_BLOCK, 0, &now) == 0);
    printf("still blocked: %d\n", sigismember(&now, SIGTRAP));
    CHECK(sigprocmask(SIG_SETMASK, &none, 0) == 0);
    printf("unblocked: %d traps\n", traps);
    for (int i = 0; i < 1500; i++) CHECK(sigprocmask(SIG_BLOCK, 0, &now) == 0);
    CHECK(sigprocmask(SIG_BLOCK, &all, 0) == 0);
    raise(SIGTRAP);
    printf("blocked again: %d traps\n", traps);
    CHECK(sigprocmask(SIG_SETMASK, &none, 0) == 0);
    printf("in the end: %d traps\n", traps);
    return 0;
}
