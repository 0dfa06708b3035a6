#include "sem.h"
#include <sys/personality.h>
int main(void) {
    cpu_set_t s;
    CHECK(sched_getaffinity(0, sizeof s, &s) == 0);
    printf("%d\n", CPU_COUNT(&s));
    printf("%d\n", (personality(0xffffffff) & ~ADDR_NO_RANDOMIZE) == 0);
    printf("%d\n", nice(0));
}
