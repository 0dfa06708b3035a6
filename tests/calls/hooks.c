// Functions that ask for parts and for zeros (those whose names begin with `hook`), entered and left in every way: called, by a table, by a
// jump, again by themselves, left by longjmp, as a handler and in one, in a child; with an argument, in a thread in place
// of the child.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "ended.h"
#define APART __attribute__((noinline, noclone))
static volatile long sink;
static jmp_buf back;
APART long leaf(long n) { long s = 0; while (n-- > 0) s += n ^ sink; return s; }
APART long hook_leaf(long n) { sink += n; return n; }
APART long hook_calls(long n) { return leaf(n) + hook_leaf(n) + leaf(2 * n); }
APART long hook_again(long n) { return n == 0 ? leaf(3) : hook_again(n - 1) + leaf(n); }
APART long around(long n) { return leaf(n) + hook_calls(n) + leaf(n); }
APART long jumps(long n) { sink++; return hook_calls(n + 1); }
APART void hook_leaves(long n) { sink += leaf(n); if (n > 2) longjmp(back, 1); }
APART void leaves(long n) { hook_leaves(n); sink += leaf(n); }
APART long other(long n) { return leaf(n) - 1; }
static long (*const table[])(long) = {leaf, hook_leaf, other, hook_calls, jumps};
APART long through_table(long n) { return table[n % 5](n) + 1; }
static void hook_handler(int signal) { (void)signal; sink += leaf(4); }
static void handler(int signal) { (void)signal; sink += hook_calls(3); }
static int ends[2], lives;
static void *thread(void *n) {
    tells_of_its_end(&lives);
    long result = around((long)n);
    if (write(ends[1], &result, sizeof result) != sizeof result) abort();
    return 0;
}
int main(int argc, char **argv) {
    (void)argv;
    long sum = leaf(1000);
    for (long i = 0; i < 3; i++) sum += around(i) + jumps(i) + hook_again(i);
    for (long i = 0; i < 5; i++) if (!setjmp(back)) leaves(i);
    for (long i = 0; i < 15; i++) sum += through_table(i);
    signal(SIGUSR1, hook_handler);
    signal(SIGUSR2, handler);
    for (int i = 0; i < 3; i++) sum += raise(i % 2 ? SIGUSR1 : SIGUSR2) + leaf(7);
    if (argc > 1) {
        pthread_t t;
        long result;
        lives = 1;
        if (pipe(ends) || pthread_create(&t, 0, thread, (void *)5)) return 1;
        if (read(ends[0], &result, sizeof result) != sizeof result) return 2;
        has_ended(&lives);
        printf("%ld\n", sum + result + around(2));
        return 0;
    }
    pid_t child = fork();
    if (child == 0) _exit(around(3) & 0x7f);
    int status;
    waitpid(child, &status, 0);
    printf("%ld %d\n", sum + around(1), WEXITSTATUS(status));
    return 0;
}
