// cc: -O1 -g -pthread
/* A program that minds: every thread does one thing over and over and looks whether it went as it should. It runs for so many
   milliseconds, says what went wrong, and ends with status 0 if nothing did. */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static atomic_int over, failures;
static char **environment;

static void wrong(const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(text, sizeof text - 1, format, arguments);
    va_end(arguments);
    text[n++] = '\n';
    if (atomic_fetch_add(&failures, 1) < 20 && write(1, text, n) != n)
        abort();
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

/* What it is doing, once a round, so that a thread that stands still is seen. */
struct task {
    const char *name;
    void (*round)(struct task *);
    pthread_t thread;
    atomic_ulong rounds;
    int pipe[2], fd;
    unsigned long state;
};

/* Registers and flags of all kinds over many instructions. */
static void computes(struct task *t)
{
    uint64_t x = 88172645463325252ull, sum = 0;
    double d = 1;
    for (int i = 0; i < 200000; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        sum += x >> (i & 31);
        d = d * 0.75 + (double)(x & 255);
    }
    uint64_t bits;
    memcpy(&bits, &d, 8);
    sum ^= bits;
    if (t->state && t->state != sum)
        wrong("the sum was %lx and is %lx", t->state, sum);
    t->state = sum;
}

static void reads(struct task *t)
{
    unsigned got;
    ssize_t n = read(t->pipe[0], &got, sizeof got);
    if (n != sizeof got)
        wrong("read: %zd, %s", n, strerror(errno));
    else if (got != t->state++)
        wrong("message %u in place of %lu", got, t->state - 1);
}

static void writes(struct task *t)
{
    unsigned n = t->state++;
    if (write(t->pipe[1], &n, sizeof n) != sizeof n)
        wrong("write: %s", strerror(errno));
    struct timespec pause = {0, 300000};
    if (nanosleep(&pause, 0))
        wrong("nanosleep: %s", strerror(errno));
}

static void sleeps(struct task *t)
{
    (void)t;
    double start = now();
    struct timespec pause = {0, 30000000};
    if (nanosleep(&pause, 0))
        wrong("nanosleep: %s", strerror(errno));
    if (now() - start < 0.03)
        wrong("slept %f s of 0.03", now() - start);
}

static void polls(struct task *t)
{
    struct pollfd none = {t->fd, POLLIN, 0};
    double start = now();
    int n = poll(&none, 1, 20);
    if (n)
        wrong("poll: %d, %s", n, strerror(errno));
    else if (now() - start < 0.019)
        wrong("polled for %f s of 0.02", now() - start);
}

static void waits_for_events(struct task *t)
{
    struct epoll_event event;
    int n = epoll_wait(t->fd, &event, 1, 15);
    if (n)
        wrong("epoll_wait: %d, %s", n, strerror(errno));
}

static sem_t there, back;

static void posts(struct task *t)
{
    (void)t;
    sem_post(&there);
    while (sem_wait(&back))
        if (errno != EINTR)
            wrong("sem_wait: %s", strerror(errno));
        else
            wrong("sem_wait was interrupted");
}

static void answers(struct task *t)
{
    (void)t;
    while (sem_wait(&there))
        wrong("sem_wait: %s", strerror(errno));
    sem_post(&back);
}

static atomic_ulong handled;

static void handler(int signal, siginfo_t *info, void *context)
{
    (void)context;
    if (signal != SIGRTMIN || info->si_code != SI_QUEUE || info->si_value.sival_int != 77)
        wrong("signal %d, code %d", signal, info->si_code);
    int saved = errno;
    struct timespec pause = {0, 200000};
    nanosleep(&pause, 0);
    errno = saved;
    atomic_fetch_add(&handled, 1);
}

/* To itself: each is handled before the call returns. */
static void signals(struct task *t)
{
    union sigval value = {.sival_int = 77};
    unsigned long before = handled;
    if (sigqueue(getpid(), SIGRTMIN, value))
        wrong("sigqueue: %s", strerror(errno));
    double start = now();
    while (handled == before && now() - start < 20)
        ;
    if (handled != before + 1)
        wrong("%lu signals handled in place of one", handled - before);
    t->state++;
}

static void waits_for_signals(struct task *t)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 1);
    pthread_kill(t->thread, SIGRTMIN + 1);
    int got = sigwaitinfo(&set, 0);
    if (got != SIGRTMIN + 1)
        wrong("sigwaitinfo: %d, %s", got, strerror(errno));
}

static atomic_int traps;

static void trapped(int signal)
{
    (void)signal;
    atomic_fetch_add(&traps, 1);
}

static void traps_itself(struct task *t)
{
    (void)t;
    int before = traps;
    __asm__ volatile("int3");
    if (traps != before + 1)
        wrong("%d traps in place of one", traps - before);
    sched_yield();
}

static void knows_its_processor(struct task *t)
{
    (void)t;
    int cpu = sched_getcpu();
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set))
        wrong("sched_getaffinity: %s", strerror(errno));
    else if (cpu < 0 || CPU_COUNT(&set) != t->fd)
        wrong("on processor %d of %d, not %d", cpu, CPU_COUNT(&set), t->fd);
}

static void keeps_gs(struct task *t)
{
    if (!t->state) {
        static uint64_t own[4] = {1, 2, 0x1234567, 4};
        syscall(SYS_arch_prctl, ARCH_SET_GS, own);
        t->state = 1;
    }
    for (int i = 0; i < 1000; i++) {
        uint64_t there;
        __asm__ volatile("movq %%gs:16, %0" : "=r"(there));
        if (there != 0x1234567)
            wrong("gs:16 is %lx", there);
    }
}

static void keeps_its_mask(struct task *t)
{
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, 0, &now);
    if (!t->state) {
        sigaddset(&now, SIGUSR2);
        sigaddset(&now, SIGTRAP);
        pthread_sigmask(SIG_SETMASK, &now, 0);
        t->state = 1;
    } else if (!sigismember(&now, SIGUSR2) || !sigismember(&now, SIGTRAP) || sigismember(&now, SIGUSR1)) {
        wrong("the mask has changed");
    }
    usleep(500);
}

static void *short_lived(void *argument)
{
    return (char *)argument + 1;
}

static void creates_threads(struct task *t)
{
    (void)t;
    pthread_t thread;
    void *result;
    if (pthread_create(&thread, 0, short_lived, (void *)41) || pthread_join(thread, &result) || result != (void *)42)
        wrong("a thread");
}

static void starts_programs(struct task *t)
{
    (void)t;
    pid_t child;
    int status;
    char *words[] = {"true", 0};
    if (posix_spawn(&child, "/bin/true", 0, 0, words, environment))
        wrong("posix_spawn: %s", strerror(errno));
    else if (waitpid(child, &status, 0) != child || status)
        wrong("status %x, %s", status, strerror(errno));
    child = fork();
    if (child == 0)
        _exit(7);
    if (waitpid(child, &status, 0) != child || status != 7 << 8)
        wrong("status %x of a fork, %s", status, strerror(errno));
}

/* Code that is made anew each time. */
static void makes_code(struct task *t)
{
    unsigned char code[] = {0xb8, 0, 0, 0, 0, 0xc3};
    unsigned value = t->state++ * 2654435761u;
    memcpy(code + 1, &value, 4);
    unsigned char *at = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 2; i++) {
        code[1] += i;
        memcpy(at, code, sizeof code);
        unsigned wanted = (value & ~0xffu) | ((value + i) & 0xff);
        unsigned got = ((unsigned (*)(void))at)();
        if (got != wanted)
            wrong("round %lu.%d: code at %p gave %x, not %x; there is %x", t->state, i, (void *)at, got, wanted, *(unsigned *)(at + 1));
    }
    munmap(at, 4096);
}

static struct task tasks[] = {
    {.name = "computes", .round = computes},
    {.name = "reads", .round = reads},
    {.name = "writes", .round = writes},
    {.name = "sleeps", .round = sleeps},
    {.name = "polls", .round = polls},
    {.name = "waits_for_events", .round = waits_for_events},
    {.name = "posts", .round = posts},
    {.name = "answers", .round = answers},
    {.name = "signals", .round = signals},
    {.name = "waits_for_signals", .round = waits_for_signals},
    {.name = "traps_itself", .round = traps_itself},
    {.name = "knows_its_processor", .round = knows_its_processor},
    {.name = "keeps_gs", .round = keeps_gs},
    {.name = "keeps_its_mask", .round = keeps_its_mask},
    {.name = "creates_threads", .round = creates_threads},
    {.name = "starts_programs", .round = starts_programs},
    {.name = "makes_code", .round = makes_code},
};

enum { TASKS = sizeof tasks / sizeof *tasks };

static void *run(void *argument)
{
    struct task *t = argument;
    t->thread = pthread_self();
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    if (t->round != signals)
        pthread_sigmask(SIG_BLOCK, &set, 0);
    /* The last message is for the reader, which would wait for ever. */
    while (!over || t->round == writes) {
        int last = over;
        t->round(t);
        atomic_fetch_add(&t->rounds, 1);
        if (last)
            break;
        if (t->round != computes && t->round != reads && t->round != posts && t->round != answers)
            usleep(100);
    }
    sem_post(&there);
    sem_post(&back);
    return 0;
}

/* Whether a list of names, with commas in between, has this one. */
static int named(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += n)
        if ((at == list || at[-1] == ',') && (!at[n] || at[n] == ','))
            return 1;
    return 0;
}

int main(int argc, char **argv, char **envp)
{
    environment = envp;
    double end = now() + (argc > 1 ? atof(argv[1]) : 1000) / 1e3;
    int pipe_of[2];
    cpu_set_t processors;
    if (pipe(pipe_of))
        return 2;
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGRTMIN, &action, 0);
    signal(SIGTRAP, trapped);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 1);
    /* Of one that is ignored, and comes while it is followed, epoll_wait is told. */
    sigaddset(&set, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &set, 0);
    sem_init(&there, 0, 0);
    sem_init(&back, 0, 0);
    sched_getaffinity(0, sizeof processors, &processors);
    /* One alone, if that is wanted. */
    const char *only = argc > 2 ? argv[2] : 0;
    int running[TASKS] = {0};
    for (int i = 0; i < TASKS; i++) {
        struct task *t = &tasks[i];
        memcpy(t->pipe, pipe_of, sizeof pipe_of);
        t->fd = t->round == waits_for_events ? epoll_create1(0)
              : t->round == polls ? eventfd(0, 0)
              : CPU_COUNT(&processors);
        running[i] = !only || !*only || named(only, t->name);
        if (running[i] && pthread_create(&t->thread, 0, run, t))
            return 2;
    }
    sigaddset(&set, SIGRTMIN);
    pthread_sigmask(SIG_BLOCK, &set, 0);
    unsigned long before[TASKS] = {0};
    double looked = now();
    while (now() < end) {
        usleep(20000);
        if (now() - looked < 10)
            continue;
        looked = now();
        for (int i = 0; i < TASKS; i++) {
            if (running[i] && tasks[i].rounds == before[i])
                wrong("%s: nothing for ten seconds", tasks[i].name);
            before[i] = tasks[i].rounds;
        }
    }
    over = 1;
    for (int i = 0; i < TASKS; i++)
        if (running[i])
            pthread_join(tasks[i].thread, 0);
    for (int i = 0; i < TASKS && argc > 3; i++)
        if (running[i])
            printf("%s: %lu\n", tasks[i].name, tasks[i].rounds);
    return failures != 0;
}
