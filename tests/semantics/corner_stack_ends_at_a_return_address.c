// The last word of a stack is a return address: the leaf that is called needs no more, and what is below cannot be written.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

#define PAGE 4096UL

long leaf(long);
long through(long (*)(long), long, void *);
long direct(long, void *);

__asm__(".text\n"
        "leaf: leaq 3(%rdi), %rax\n"
        " ret\n"
        // Each calls once, at the end of the stack in its last argument.
        "through: pushq %rbp\n"
        " movq %rsp, %rbp\n"
        " movq %rdx, %rsp\n"
        " movq %rdi, %rax\n"
        " movq %rsi, %rdi\n"
        " call *%rax\n"
        " movq %rbp, %rsp\n"
        " popq %rbp\n"
        " ret\n"
        "direct: pushq %rbp\n"
        " movq %rsp, %rbp\n"
        " movq %rsi, %rsp\n"
        " call leaf\n"
        " movq %rbp, %rsp\n"
        " popq %rbp\n"
        " ret\n");

static volatile sig_atomic_t ticks;

static void on_tick(int s) { (void)s; ticks++; }

int main(void) {
    static char alternative[1 << 16];
    stack_t stack = {.ss_sp = alternative, .ss_size = sizeof alternative};
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_ONSTACK};
    if (sigaltstack(&stack, NULL) || sigaction(SIGALRM, &action, NULL)) return 99;
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages, PAGE, PROT_NONE)) return 99;
    char *end = pages + PAGE;
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    long sum = 0;
    // With room for one word, two, and three.
    for (long i = 0; i < 30000; i++) {
        sum += direct(i, end + 8 + 8 * (i % 3));
        sum += through(leaf, i, end + 8 + 8 * (i % 3));
    }
    while (!ticks) sum += direct(0, end + 8) - 3;
    setitimer(ITIMER_REAL, &never, NULL);
    sum += direct(0, end + 8) - 3;
    // The word is what the guest wrote: an address of its own.
    unsigned long word;
    memcpy(&word, end, sizeof word);
    printf("%ld %d\n", sum, word > (unsigned long)direct && word < (unsigned long)direct + 64);
    return 0;
}
