// The signals that an instruction can cause, sent to a process while it computes: each arrives once, and nobody takes it for the
// fault of an instruction. Sent by kill, tgkill, sigqueue and timers, alone and all at a time. With an argument: so many rounds.
#include "sem.h"
#include <sys/prctl.h>

static const int kinds[] = {SIGSEGV, SIGILL, SIGFPE, SIGBUS, SIGTRAP};
enum { KINDS = sizeof kinds / sizeof *kinds };
static struct {
    atomic_int got[KINDS], code[KINDS], ready;
    volatile int go, value[64];
} *shared;

static void handler(int sig, siginfo_t *info, void *c UNUSED) {
    for (int k = 0; k < KINDS; k++)
        if (kinds[k] == sig) {
            shared->code[k] = info->si_code;
            shared->got[k]++;
        }
}

// Instructions that read and write memory, with flags live in between.
static void compute(int how) {
    if (how == 0)
        while (shared->go == 0) {}
    unsigned long h = 1;
    for (unsigned i = 0; shared->go == 0; i++) {
        h = h * 6364136223846793005 + (unsigned)shared->value[i % 64];
        shared->value[h % 64] += (int)h;
        if (how == 2) work(h % 16);
    }
}

static void send(pid_t to, int way, int kind) {
    if (way == 0) CHECK(kill(to, kind) == 0);
    if (way == 1) CHECK(syscall(SYS_tgkill, to, to, kind) == 0);
    if (way == 2) CHECK(sigqueue(to, kind, (union sigval){.sival_int = 1}) == 0);
}

static pid_t computing(int how, int timers) {
    shared->ready = 0;
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int k = 0; timers && k < KINDS; k++) {
            struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = kinds[k]};
            struct itimerspec every = {{0, 5000000 + 1000 * k}, {0, 5000000}};
            timer_t t;
            CHECK(timer_create(CLOCK_MONOTONIC, &e, &t) == 0 && timer_settime(t, 0, &every, 0) == 0);
        }
        shared->ready = 1;
        compute(how);
        _exit(0);
    }
    while (!shared->ready) usleep(100);
    return child;
}

// Waits until the child has got `more` of each of these kinds.
static void wait_for(pid_t child, const int *before, unsigned which, int more) {
    for (int k = 0; k < KINDS; k++)
        for (int i = 0; which >> k & 1 && shared->got[k] < before[k] + more; i++) {
            int status;
            if (waitpid(child, &status, WNOHANG) != 0) {
                printf("the child has died of %d\n", WTERMSIG(status));
                exit(1);
            }
            if (i == 100000) {
                printf("signal %d is lost\n", kinds[k]);
                kill(child, SIGKILL);
                exit(1);
            }
            usleep(i < 100 ? 20 : 100);
        }
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 10;
    setvbuf(stdout, 0, _IONBF, 0);
    shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int k = 0; k < KINDS; k++) on(kinds[k], handler, SA_RESTART);
    static const char *names[] = {"kill", "tgkill", "sigqueue", "timers"};
    static const int codes[] = {SI_USER, SI_TKILL, SI_QUEUE, SI_TIMER};
    for (int way = 0; way < 4; way++)
        for (int how = 0; how < 3; how++) {
            int wrong = 0, start[KINDS];
            for (int k = 0; k < KINDS; k++) start[k] = shared->got[k];
            pid_t child = computing(how, way == 3);
            if (way == 3) wait_for(child, start, (1 << KINDS) - 1, rounds);
            for (int r = 0; way < 3 && r < rounds; r++)
                // Each alone, and all at a time.
                for (int k = 0; k <= KINDS; k++) {
                    int before[KINDS];
                    unsigned which = k < KINDS ? 1u << k : (1u << KINDS) - 1;
                    for (int i = 0; i < KINDS; i++) before[i] = shared->got[i];
                    for (int i = 0; i < KINDS; i++)
                        if (which >> i & 1) send(child, way, kinds[i]);
                    wait_for(child, before, which, 1);
                    for (int i = 0; i < KINDS; i++) {
                        if (which >> i & 1) wrong += shared->code[i] != codes[way];
                        wrong += shared->got[i] != before[i] + (int)(which >> i & 1);
                    }
                }
            shared->go = 1;
            int status;
            CHECK(waitpid(child, &status, 0) == child);
            shared->go = 0;
            printf("%s, loop %d: %s, status %x\n", names[way], how, wrong ? "wrong" : "each has come once", status);
        }
    return 0;
}
