// A loop of system calls under a timer: each is made once more, or its block left in the middle, wherever the signal comes.
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
enum { ROUNDS = 400000 };
static volatile int ticks;
static void tick(int sig) { (void)sig; ticks++; }
// Four instructions a round, and three besides.
__attribute__((noinline, noclone, naked)) void counted(long rounds)
{
    (void)rounds;
    __asm__("mov %rdi, %rdx\nmov $39, %esi\n1: mov %esi, %eax\nsyscall\ndec %rdx\njnz 1b\nret");
}
int main(void)
{
    struct itimerval every = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    if (signal(SIGALRM, tick) == SIG_ERR || setitimer(ITIMER_REAL, &every, 0)) return 9;
    counted(ROUNDS);
    if (setitimer(ITIMER_REAL, &never, 0)) return 9;
    printf("%d\n", ticks > 10);
    return 0;
}
