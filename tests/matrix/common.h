/* What the programs of the matrix have in common: a course of rounds, in each of which one request is made somewhere deep
 * inside, if the program's argument asks for it:
 *   s  instrumentation starts          (the first round)
 *   d  a part is dumped                (the second)
 *   z  costs are set to zero           (the third)
 *   t  collection is switched off      (the fourth) and on again (the fifth)
 *   S  instrumentation stops           (the sixth) and starts again (the seventh)
 *   p  there is a pause in between, longer than code is kept that records for nobody
 * Whatever is done is the same from run to run. `before` runs before the first round, and never again; `uncollected` only
 * between the fourth and the fifth, `uninstrumented` between the sixth and the seventh. */
#include <callgrind.h>
#include <string.h>
#include <time.h>

#define APART __attribute__((noinline, noclone))

static const char *asked = "";
static int step;
static volatile long sink;

APART void leaf(long n) { while (n-- > 0) sink += n & 1 ? 2 : 3; }
APART void before(void) { leaf(11); }
APART void uncollected(void) { leaf(12); }
APART void uninstrumented(void) { leaf(13); }

/* In line, so that the function it stands in asks, and returns from there are told. */
static inline __attribute__((always_inline)) void point(void)
{
#define WANTS(c) (strchr(asked, c) != 0)
    switch (step++) {
    case 0: if (WANTS('s')) CALLGRIND_START_INSTRUMENTATION; break;
    case 1: if (WANTS('d')) CALLGRIND_DUMP_STATS_AT("asked"); break;
    case 2: if (WANTS('z')) CALLGRIND_ZERO_STATS; break;
    case 3: if (WANTS('t')) CALLGRIND_TOGGLE_COLLECT; break;
    case 4: if (WANTS('t')) CALLGRIND_TOGGLE_COLLECT; break;
    case 5: if (WANTS('S')) CALLGRIND_STOP_INSTRUMENTATION; break;
    case 6: if (WANTS('S')) CALLGRIND_START_INSTRUMENTATION; break;
    }
}

/* A round of the program, with exactly one point in it. */
static void once(int n);

int main(int argc, char **argv)
{
    asked = argc > 1 ? argv[1] : "";
    before();
    for (int n = 0; n < 9; n++) {
        if (n == 4) uncollected();
        if (n == 6) uninstrumented();
        if (n == 6 && strchr(asked, 'p')) nanosleep(&(struct timespec){0, 80000000}, 0);
        once(n);
        leaf(n);
    }
    return step == 9 ? 0 : 1;
}
