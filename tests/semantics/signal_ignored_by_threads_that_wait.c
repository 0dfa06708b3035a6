// cc: -O1 -pthread
// Signals for the process that nobody has a handler for, while its threads are busy: whichever takes one, the call of another that
// was woken for it goes on, also where the kernel would not make it again.
#include "sem.h"
#include <sys/epoll.h>
#include <sys/sem.h>
#include <sys/wait.h>
enum { SIGNALS = 300, CHILDREN = 20 };
static int semaphores, ends[2];
static void *busy(void *arg UNUSED) {
    for (int i = 0; i < SIGNALS + CHILDREN; i++) {
        if (i < SIGNALS) {
            CHECK(kill(getpid(), i % 2 ? SIGURG : SIGWINCH) == 0);
        } else {
            pid_t child = fork();
            if (child == 0) _exit(0);
            CHECK(child > 0 && waitpid(child, 0, 0) == child);
        }
        void *p = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(p != MAP_FAILED && munmap(p, 4096) == 0);
    }
    return 0;
}
static void *ends_it(void *arg) {
    pthread_t other;
    CHECK(pthread_create(&other, 0, busy, 0) == 0);
    busy(0);
    CHECK(pthread_join(other, 0) == 0);
    if (arg) CHECK(semop(semaphores, &(struct sembuf){0, 1, 0}, 1) == 0);
    else CHECK(write(ends[1], "", 1) == 1);
    return 0;
}
int main(void) {
    pthread_t thread;
    struct epoll_event e = {.events = EPOLLIN};
    int poller = epoll_create1(0);
    CHECK(poller >= 0 && pipe(ends) == 0 && (semaphores = semget(IPC_PRIVATE, 1, 0600)) >= 0);
    CHECK(epoll_ctl(poller, EPOLL_CTL_ADD, ends[0], &e) == 0);
    CHECK(pthread_create(&thread, 0, ends_it, 0) == 0);
    int polled = epoll_wait(poller, &e, 1, -1), error = polled == 1 ? 0 : errno;
    CHECK(pthread_join(thread, 0) == 0 && pthread_create(&thread, 0, ends_it, &e) == 0);
    int taken = semop(semaphores, &(struct sembuf){0, -1, 0}, 1);
    if (taken) error = errno;
    CHECK(pthread_join(thread, 0) == 0 && semctl(semaphores, 0, IPC_RMID) == 0);
    printf("%d %d %d\n", polled, taken, error);
    return 0;
}
