// Every signal that an instruction causes, with each action, blocked or not, alone or with all others, in a handler, too: a handler
// runs for what is not blocked; everything else kills by the signal of that fault, and by no other one.
#include "sem.h"

static const int kinds[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
static const char *const names[] = {"SEGV", "BUS", "ILL", "FPE", "TRAP"};
static const char *const actions[] = {"default", "ignored", "handled", "handled once"};
static const char *const masks[] = {"open", "blocked", "all blocked", "all others blocked"};
static char *beyond;
static int nested;

static __attribute__((noinline)) void fault(int sig) {
    switch (sig) {
    case SIGSEGV: *(volatile int *)8 = 1; break;
    case SIGBUS: *(volatile char *)beyond = 1; break;
    case SIGILL: __asm__ volatile("ud2"); break;
    case SIGFPE: __asm__ volatile("xor %%ecx, %%ecx; mov $1, %%eax; cltd; idiv %%ecx" ::: "eax", "ecx", "edx"); break;
    case SIGTRAP: __asm__ volatile("int3"); break;
    }
}

static void handler(int sig, siginfo_t *info, void *context UNUSED) {
    if (nested) {
        nested = 0;
        fault(sig);
    }
    _exit(info->si_code > 0 ? 40 + sig : 99);
}

static void *run(void *arg) {
    fault(*(int *)arg);
    return 0;
}

static void attempt(int sig, int action, int mask, int how) {
    struct sigaction a = {.sa_handler = action == 1 ? SIG_IGN : SIG_DFL};
    if (action >= 2) {
        a.sa_sigaction = handler;
        a.sa_flags = SA_SIGINFO | (action == 3 ? SA_RESETHAND : 0);
    }
    CHECK(sigaction(sig, &a, 0) == 0);
    sigset_t set;
    sigemptyset(&set);
    if (mask >= 2) sigfillset(&set);
    if (mask == 1) sigaddset(&set, sig);
    if (mask == 3) sigdelset(&set, sig);
    CHECK(sigprocmask(SIG_SETMASK, &set, 0) == 0);
    nested = how == 1;
    if (how == 2) {
        pthread_t t;
        CHECK(pthread_create(&t, 0, run, &sig) == 0);
        pthread_join(t, 0);
    } else {
        fault(sig);
    }
    _exit(98);
}

// With an argument only some of what is blocked.
int main(int argc, char **argv UNUSED) {
    CHECK((beyond = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memfd_create("empty", 0), 0)) != MAP_FAILED);
    for (int kind = 0; kind < 5; kind++)
        for (int action = 0; action < 4; action++)
            for (int mask = 0; mask < 4; mask++)
                for (int how = 0; how < 3; how++) {
                    // A fault in its own handler; a fault in a thread.
                    if (how == 1 && (action < 2 || mask == 1 || mask == 2)) continue;
                    if (how == 2 && (mask != 1 || action != 2)) continue;
                    if (mask == 3 && how != 1) continue;
                    if (argc > 1 && (mask != 1 || action != 2 || how == 2 || kinds[kind] == SIGBUS)) continue;
                    pid_t p = fork();
                    CHECK(p >= 0);
                    if (!p) attempt(kinds[kind], action, mask, how);
                    int status;
                    CHECK(waitpid(p, &status, 0) == p);
                    printf("%s %s, %s%s: ", names[kind], actions[action], masks[mask],
                           how == 1 ? ", in its handler" : how == 2 ? ", in a thread" : "");
                    show_status(status);
                    fflush(stdout);
                }
    return 0;
}
