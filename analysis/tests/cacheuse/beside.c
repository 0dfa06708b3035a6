#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static int there[2];
static char lines[16 * 64] __attribute__((aligned(64)));
__attribute__((noinline, aligned(64))) void touch_lines(void) { for (int i = 0; i < 16; i++) *(volatile long *)(lines + 64 * i); }
static void *other(void *goes_on)
{
    for (int i = 0; i < 50; i++) touch_lines();
    if (write(there[1], "", 1) != 1) _exit(1);
    while (goes_on) touch_lines();
    for (;;) pause();
}
int main(int argc, char **argv)
{
    pthread_t thread;
    char byte;
    if (pipe(there) != 0 || pthread_create(&thread, 0, other, argc > 1 ? argv : 0) != 0) return 1;
    if (read(there[0], &byte, 1) != 1) return 1;
    if (fork() == 0) _exit(0);
    wait(0);
    _exit(0);
}
