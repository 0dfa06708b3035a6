// cc: -O1
// oracle: valgrind
// Forks: the child's profile begins with the counts of its parent.
#include "rt.h"
__attribute__((noinline)) static u64 before(void) {
    u64 h = 1;
    for (int i = 0; i < 1000; i++) h = hash(h, i);
    return h;
}
__attribute__((noinline)) static u64 in_child(u64 n) {
    u64 h = n;
    for (u64 i = 0; i < 100 * n; i++) h = hash(h, i);
    return h;
}
__attribute__((noinline)) static u64 in_parent(void) {
    u64 h = 3;
    for (int i = 0; i < 700; i++) h = hash(h, i);
    return h;
}
int run(i64 *stack) {
    u64 h = before();
    for (u64 n = 1; n < 4; n++) {
        i64 pid = SYS1(NR_fork, 0);
        if (pid == 0) {
            print("child", in_child(n));
            return n;
        }
        u32 status = 0;
        SYS4(NR_wait4, -1, &status, 0, 0);
        h = hash(h, status);
    }
    print("parent", hash(h, in_parent()));
    return 0;
}
