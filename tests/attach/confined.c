// cc: -O1 -g
/* Says when it is ready and waits for a byte; computes; says so and waits; makes sure that what it has set up still holds; ends.
   "filter": a filter of its system calls. "sequence": it runs restartable sequences of its own all the time that it computes. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The C library's part of `struct rseq`, where it has registered one. */
struct part {
    unsigned cpu_id_start, cpu_id;
    unsigned long sequence;
};
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned __rseq_size __attribute__((weak));

static volatile unsigned sum;

static volatile struct part *registered(void)
{
    if (!&__rseq_offset || !__rseq_size)
        return 0;
    return (volatile struct part *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

__attribute__((noinline)) static void work(void)
{
    for (unsigned i = 0; i < 3000000; i++)
        sum += i;
}

static void filter(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_uname, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munmap, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    struct sock_fprog program = { sizeof code / sizeof *code, code };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        exit(77);
}

/* Computes within a sequence; whenever it is interrupted, it begins anew. */
static void sequence(volatile struct part *part)
{
    unsigned long rounds = 400000000, at = (unsigned long)&part->sequence;
    __asm__ volatile(".pushsection .data.sequence, \"aw\"\n"
                     ".balign 32\n"
                     "9: .long 0, 0\n"
                     ".quad 1f, 2f - 1f, 4f\n"
                     ".popsection\n"
                     "3: leaq 9b(%%rip), %%rax\n"
                     "movq %%rax, (%1)\n"
                     "1: decq %0\n"
                     "jnz 1b\n"
                     "2: jmp 5f\n"
                     ".long 0x53053053\n"
                     "4: jmp 3b\n"
                     "5: movq $0, (%1)\n"
                     : "+r"(rounds)
                     : "r"(at)
                     : "rax", "memory", "cc");
}

static void says(const char *what)
{
    char byte;
    if (write(1, what, 1) != 1 || read(0, &byte, 1) != 1)
        exit(2);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    volatile struct part *part = registered();
    struct utsname name;
    if (!strcmp(how, "filter"))
        filter();
    if (!strcmp(how, "sequence")) {
        if (!part)
            exit(77);
        says("r");
        sequence(part);
        says("w");
        return 0;
    }
    says("r");
    work();
    says("w");
    if ((uname(&name) == -1 && errno == EPERM) != !strcmp(how, "filter"))
        return 3;
    /* The kernel still writes down where it runs. */
    for (int i = 0; part && i < 1000; i++) {
        unsigned before = part->cpu_id, now = sched_getcpu(), after = part->cpu_id;
        if (before == after && now != before)
            return 4;
        if (i % 100 == 0)
            usleep(100);
    }
    says("d");
    return 0;
}
