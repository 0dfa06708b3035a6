// The first thread ends, and another one goes on.
// cc: -pthread
#include <pthread.h>
#include <unistd.h>

static void *goes_on(void *nothing) { for (;;) sleep(1); return nothing; }

int main(void)
{
    pthread_t other;
    if (pthread_create(&other, 0, goes_on, 0)) return 1;
    pthread_exit(0);
}
