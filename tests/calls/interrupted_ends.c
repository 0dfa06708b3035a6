// Handlers whose ends are interrupted by another handler, above all between their last instruction and the call that restores
// what they interrupted. Each ends once, so calls are as many as were made.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone))
enum { ROUNDS = 2000 };
static volatile unsigned long sink;
static volatile int ticks;
NOINLINE void leaf(void) { sink++; }
static void often(int sig) { (void)sig; leaf(); }
static void now_and_then(int sig) { (void)sig; ticks++; }
NOINLINE void inner(void) { raise(SIGUSR1); }
NOINLINE void outer(void) { inner(); sink++; }
int main(void) {
    struct sigaction a = {.sa_handler = often}, b = {.sa_handler = now_and_then};
    if (sigaction(SIGUSR1, &a, 0) || sigaction(SIGUSR2, &b, 0)) return 9;
    pid_t parent = getpid(), child = fork();
    if (child == 0) for (;;) { kill(parent, SIGUSR2); for (volatile int i = 0; i < 20000; i++); }
    for (int i = 0; i < ROUNDS; i++) outer();
    kill(child, SIGKILL);
    wait(0);
    printf("%d\n", ticks > 0);
    return 0;
}
