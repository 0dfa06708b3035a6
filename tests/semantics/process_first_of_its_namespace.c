// The first process of a PID namespace: what its own kind sends it is dropped unless there is a handler, a stop, too; but its
// faults kill it, whatever it blocks or ignores, and so does SIGKILL from outside.
#include "sem.h"

static void handler(int s UNUSED, siginfo_t *i UNUSED, void *c UNUSED) { _exit(42); }
static void divide(void) { __asm__ volatile("xor %%ecx, %%ecx\n idiv %%ecx" ::: "eax", "ecx", "edx"); }
static void fault(void) { *(volatile int *)8 = 1; }
static void *faults(void *arg) { return fault(), arg; }

static void first(int how, int ready) {
    char go = 0;
    switch (how) {
    case 0: fault(); break;
    case 1: __builtin_trap(); break;
    case 2: divide(); break;
    case 3: __asm__ volatile("int3"); break;
    case 4: ((void (*)(void))16)(); break;
    case 5: signal(SIGSEGV, SIG_IGN), fault(); break;
    case 6: block_signal(SIGSEGV), fault(); break;
    case 7: on(SIGSEGV, handler, 0), block_signal(SIGSEGV), fault(); break;
    case 8: on(SIGSEGV, handler, 0), fault(); break;
    case 9: {
        pthread_t t;
        CHECK(pthread_create(&t, 0, faults, 0) == 0);
        pthread_join(t, 0);
        break;
    }
    // A handler's frame that cannot be, and one that cannot be restored.
    case 10:
        on(SIGUSR1, handler, 0);
        __asm__ volatile("mov $16, %%rsp\n mov $39, %%eax\n syscall\n mov %%eax, %%edi\n mov $10, %%esi\n mov $62, %%eax\n"
                         "syscall\n ud2" ::: "memory");
        break;
    case 11: __asm__ volatile("mov $16, %%rsp\n mov $15, %%eax\n syscall\n ud2" ::: "memory"); break;
    case 12: abort(); break;
    case 13: if (fork() == 0) fault(); else { int st; wait(&st); _exit(WTERMSIG(st)); } break;
    case 14: CHECK(write(ready, &go, 1) == 1), usleep(100000); break;
    case 15: CHECK(write(ready, &go, 1) == 1), usleep(30000000); break;
    default:
        // Each signal that can be sent, by itself to itself.
        raise(how - 100);
        work(1000);
    }
    _exit(3);
}

int main(void) {
    if (geteuid() != 0 && unshare(CLONE_NEWUSER) != 0) {
        printf("no namespaces here\n");
        return 0;
    }
    for (int how = 0; how <= 100 + 31; how++) {
        if (how == 16) how = 101;
        int ready[2], status;
        char c;
        CHECK(pipe(ready) == 0);
        fflush(stdout);
        // Only the first child is that; the next namespace is another process's.
        pid_t between = fork();
        if (between == 0) {
            CHECK(unshare(CLONE_NEWPID) == 0);
            pid_t pid = fork();
            if (pid == 0) first(how, ready[1]);
            if (how == 14 || how == 15) CHECK(read(ready[0], &c, 1) == 1 && kill(pid, how == 14 ? SIGTERM : SIGKILL) == 0);
            CHECK(waitpid(pid, &status, 0) == pid);
            printf("%d: ", how);
            show_status(status);
            fflush(stdout);
            _exit(0);
        }
        CHECK(waitpid(between, &status, 0) == between && status == 0);
        close(ready[0]), close(ready[1]);
    }
    return 0;
}
