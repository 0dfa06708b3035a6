// A handler that interrupts a thread before `popf` is shown the flags that there were, without a trap flag; nobody is trapped
// when it has returned.
#define _GNU_SOURCE
#include "sem.h"
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

static volatile unsigned handled, trapped;
static void on_alarm(int sig, siginfo_t *info, void *context) {
    (void)sig, (void)info;
    handled++;
    if (((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] & 0x100) trapped++;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_alarm, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGALRM, &action, 0);
    struct itimerval often = {{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &often, 0);
    while (handled < 400)
        for (int i = 0; i < 50; i++)
            __asm__ volatile("sub $128, %%rsp\npushf\npushf\npushf\npushf\npopf\n.byte 0x66, 0x90\npopf\nnop\npopf\npopf\nadd $128, %%rsp" : : : "memory", "cc");
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, 0);
    printf("%u trapped\n", trapped);
    return 0;
}
