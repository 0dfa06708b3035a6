// SIGTRAPs that one thread queues to another, each with a value, while that one runs code that has just been written: each comes
// once, with its value and sender.
#include "sem.h"

enum { ROUNDS = 200 };
static atomic_int got, wrong, over;
static pid_t target;
static void h(int s UNUSED, siginfo_t *i, void *c UNUSED) {
    if (i->si_code != SI_QUEUE || i->si_value.sival_int != got || i->si_pid != getpid()) wrong++;
    got++;
}
static void *f(void *x UNUSED) {
    unsigned char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(code != MAP_FAILED);
    target = syscall(SYS_gettid);
    for (unsigned n = 0; !over; n++) {
        memcpy(code, "\xb8\0\0\0\0\xc3", 6);
        memcpy(code + 1, &n, 4);
        CHECK(((unsigned (*)(void))code)() == n);
    }
    return 0;
}
int main(void) {
    on(SIGTRAP, h, 0);
    pthread_t t;
    CHECK(pthread_create(&t, 0, f, 0) == 0);
    while (!*(volatile pid_t *)&target) usleep(100);
    for (int i = 0; i < ROUNDS; i++) {
        siginfo_t info = {.si_code = SI_QUEUE};
        info.si_pid = getpid(), info.si_uid = getuid(), info.si_value.sival_int = i;
        CHECK(syscall(SYS_rt_tgsigqueueinfo, getpid(), target, SIGTRAP, &info) == 0);
        for (int k = 0; got == i && k < 20000; k++) usleep(100);
        CHECK(got == i + 1);
    }
    // Only the kernel may say these; and not to another process.
    siginfo_t info = {.si_code = SI_USER};
    errno = 0;
    long r = syscall(SYS_rt_tgsigqueueinfo, getppid(), getppid(), SIGTRAP, &info);
    printf("%ld %s\n", r, strerror(errno));
    over = 1;
    pthread_join(t, 0);
    printf("%d came, %d wrong\n", got, wrong);
}
