// Threads, one at a time while all others wait, with requests in each of them. They wait in `read`, which takes as many
// instructions whether it has to wait or not; none of them ends, since who ends does so beside others. Before a request is made
// there is a pause, in which the others get to where they wait.
// Functions are bound at the start: which thread would be the first to call one is left to chance.
// cc: -pthread -Wl,-z,now
#include "common.h"
#include <pthread.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 4 };
static int to[MOST][2], from[2];
static int round_of_others;

APART long work(int n) { leaf(n); return n < 1 ? 0 : work(n - 1) + 1; }
APART void pause_for_others(void) { nanosleep(&(struct timespec){ .tv_nsec = 15000000 }, 0); }
APART void share(int n, int asks)
{
    work(n % 4);
    if (asks) {
        pause_for_others();
        point();
    }
    work(n % 3);
}

APART void wait_for(int fd) { char c; if (read(fd, &c, 1) != 1) _exit(2); }
APART void tell(int fd) { char c = 'x'; if (write(fd, &c, 1) != 1) _exit(3); }

APART void *other(void *number)
{
    long me = (long)number;
    tell(from[1]);
    for (;;) {
        wait_for(to[me][0]);
        share(round_of_others, round_of_others % 3 == 1 && me == 0);
        if (round_of_others % 3 == 2 && me == 1) {
            pause_for_others();
            point();
        }
        tell(from[1]);
    }
    return 0;
}

APART void let_it_run(int n) { tell(to[n][1]); wait_for(from[0]); }

static void once(int n)
{
    static int threads;
    round_of_others = n;
    if (n == 0 && pipe(from)) _exit(1);
    if (threads < MOST && n != 3) {
        pthread_t t;
        if (pipe(to[threads]) || pthread_create(&t, 0, other, (void *)(long)threads)) _exit(1);
        threads++;
        wait_for(from[0]);
    }
    for (int i = 0; i < threads; i++) let_it_run(i);
    pause_for_others();
    if (n % 3 == 0) point();
    work(3);
}
