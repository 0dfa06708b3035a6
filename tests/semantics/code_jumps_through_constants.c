// Calls and jumps through a word that is protected against writes for most of the time, but not for ever.
#include "sem.h"
static void *words[1024] __attribute__((aligned(4096), used));
#define PAGE ((void *)words)
asm(".text\n.balign 4096\n"
    "call_it: sub $8, %rsp; call *words+16(%rip); add $8, %rsp; ret\n"
    "jump_there: jmp *words+24(%rip)\n"
    "times_through: push %rbx; push %rbp; push %r12; mov %edi, %ebx; xor %ebp, %ebp\n"
    "1: call jump_there; add %eax, %ebp; dec %ebx; jnz 1b; mov %ebp, %eax; pop %r12; pop %rbp; pop %rbx; ret\n.balign 4096\n");
int call_it(void), jump_there(void), times_through(int n);
#define SAYS(n) static int say##n(void) { return n; }
SAYS(1) SAYS(2) SAYS(3) SAYS(4) SAYS(5) SAYS(6) SAYS(7)
static void set(int (*f)(void)) { words[2] = words[3] = (void *)f; }
static void protect(int how) { CHECK(mprotect(PAGE, 4096, how) == 0); }
static void show(const char *when) {
    // What has been translated once as a jump to who knows where stays one, if it is not thrown away.
    CHECK(mprotect((void *)call_it, 4096, PROT_READ | PROT_EXEC) == 0);
    printf("%d ", times_through(5));
    int a = call_it(), b = jump_there();
    printf("%s: %d %d %d\n", when, a, b, times_through(1000));
    fflush(stdout);
}
static sigjmp_buf back;
static void fault(int sig, siginfo_t *info, void *context) {
    printf("signal %d at %+ld\n", sig, (long)((char *)info->si_addr - (char *)words));
    siglongjmp(back, 1);
}
static atomic_int turn;
static void *other(void *x) {
    while (turn != 1) sched_yield();
    protect(PROT_READ | PROT_WRITE);
    set(say6);
    protect(PROT_READ);
    turn = 2;
    return x;
}
int main(void) {
    set(say1);
    show("writable");
    set(say2);
    show("written");
    protect(PROT_READ);
    show("protected");
    for (int i = 0; i < 4; i++) {
        protect(PROT_READ | PROT_WRITE);
        set(i % 2 ? say3 : say4);
        if (i > 1) show("written again");
        protect(PROT_READ);
        show("protected again");
    }
    // A child's memory is its own.
    for (int protected = 0; protected < 2; protected++) {
        pid_t child = fork();
        if (!child) {
            protect(PROT_READ | PROT_WRITE);
            set(say5);
            if (protected) protect(PROT_READ);
            show("in the child");
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        show_status(status);
        show("in the parent");
    }
    // A thread changes it while another one uses it.
    pthread_t t;
    CHECK(pthread_create(&t, 0, other, 0) == 0);
    long all = call_it();
    turn = 1;
    while (turn != 2) {
        int now = times_through(10);
        CHECK(now >= 10 && now <= 70);
    }
    CHECK(pthread_join(t, 0) == 0);
    printf("%ld\n", all);
    show("behind the thread");
    // Other memory in its place: anonymous, of a file, moved there, none.
    void *spare = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(spare != MAP_FAILED);
    ((void **)spare)[2] = ((void **)spare)[3] = (void *)say7;
    FILE *f = tmpfile();
    void *page[512] = {0, 0, (void *)say1, (void *)say2};
    CHECK(f && fwrite(page, 4096, 1, f) == 1 && fflush(f) == 0);
    CHECK(mmap(PAGE, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, fileno(f), 0) == PAGE);
    show("of a file");
    CHECK(mmap(PAGE, 4096, PROT_READ, MAP_SHARED | MAP_FIXED, fileno(f), 0) == PAGE);
    show("shared");
    page[2] = page[3] = (void *)say4;
    CHECK(pwrite(fileno(f), page, 4096, 0) == 4096);
    show("shared and written");
    CHECK(mprotect(spare, 4096, PROT_READ) == 0);
    CHECK(mremap(spare, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, PAGE) == PAGE);
    show("moved there");
    on(SIGSEGV, fault, SA_NODEFER);
    protect(PROT_NONE);
    if (!sigsetjmp(back, 1)) call_it();
    if (!sigsetjmp(back, 1)) jump_there();
    protect(PROT_READ);
    show("back");
    CHECK(munmap(PAGE, 4096) == 0);
    if (!sigsetjmp(back, 1)) jump_there();
    if (!sigsetjmp(back, 1)) times_through(3);
    CHECK(mmap(PAGE, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == PAGE);
    set(say3);
    show("new");
}
