// Twice the same function, the second time under a timer: its blocks, which lead to each other in many ways, are left in the middle
// wherever the signal comes, and must cost as much as without.
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
enum { ROUNDS = 5000000 };
static volatile int ticks;
static void tick(int sig) { (void)sig; ticks++; }
static volatile long cells[64];
#define BLOCKS(name)                                                                                                   \
    __attribute__((noinline, noclone)) unsigned long name(long rounds)                                                 \
    {                                                                                                                  \
        unsigned long sum = 0;                                                                                         \
        for (long i = 0; i < rounds; i++) {                                                                            \
            if (i % 3 == 0) cells[i & 63] += i;                                                                        \
            else if (i & 4) sum += cells[i & 31];                                                                      \
            else sum ^= cells[0];                                                                                      \
            if (sum & 1) cells[5] = sum;                                                                               \
            if (i & 8) sum = sum * 5 + cells[7];                                                                       \
            if (i & 16) { if (sum & 2) cells[9]++; else cells[10] = i; }                                               \
            sum = sum * 3 + 1;                                                                                         \
        }                                                                                                              \
        for (int i = 0; i < 64; i++) cells[i] = 0;                                                                     \
        return sum;                                                                                                    \
    }
BLOCKS(undisturbed)
BLOCKS(disturbed)
int main(void)
{
    struct itimerval every = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    unsigned long sum = undisturbed(ROUNDS);
    if (signal(SIGALRM, tick) == SIG_ERR || setitimer(ITIMER_REAL, &every, 0)) return 9;
    sum -= disturbed(ROUNDS);
    if (setitimer(ITIMER_REAL, &never, 0)) return 9;
    printf("%lu %d\n", sum, ticks > 5);
    return 0;
}
