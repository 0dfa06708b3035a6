// What the C programs share: system calls without libc, output, and an entry point that calls run().
#define NR(name) NR_##name
enum { NR_read = 0, NR_write = 1, NR_mmap = 9, NR_mprotect = 10, NR_munmap = 11, NR_rt_sigaction = 13,
       NR_rt_sigprocmask = 14, NR_rt_sigreturn = 15, NR_sched_yield = 24, NR_getpid = 39, NR_clone = 56, NR_fork = 57,
       NR_vfork = 58, NR_exit = 60, NR_wait4 = 61, NR_kill = 62, NR_sigaltstack = 131, NR_arch_prctl = 158,
       NR_gettid = 186, NR_futex = 202, NR_exit_group = 231, NR_tgkill = 234 };

typedef unsigned char u8;
typedef unsigned int u32;
typedef long i64;
typedef unsigned long u64;

static inline __attribute__((always_inline)) i64 sys(i64 n, i64 a, i64 b, i64 c, i64 d, i64 e, i64 f) {
    register i64 r10 __asm__("r10") = d;
    register i64 r8 __asm__("r8") = e;
    register i64 r9 __asm__("r9") = f;
    __asm__ volatile("syscall" : "+a"(n) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
    return n;
}
#define SYS1(n, a) sys(n, (i64)(a), 0, 0, 0, 0, 0)
#define SYS2(n, a, b) sys(n, (i64)(a), (i64)(b), 0, 0, 0, 0)
#define SYS3(n, a, b, c) sys(n, (i64)(a), (i64)(b), (i64)(c), 0, 0, 0)
#define SYS4(n, a, b, c, d) sys(n, (i64)(a), (i64)(b), (i64)(c), (i64)(d), 0, 0)
#define SYS6(n, a, b, c, d, e, f) sys(n, (i64)(a), (i64)(b), (i64)(c), (i64)(d), (i64)(e), (i64)(f))

// The compiler calls these by itself.
void *memcpy(void *to, const void *from, u64 n) {
    for (u64 i = 0; i < n; i++) ((volatile u8 *)to)[i] = ((const u8 *)from)[i];
    return to;
}
void *memset(void *to, int c, u64 n) {
    for (u64 i = 0; i < n; i++) ((volatile u8 *)to)[i] = c;
    return to;
}

static void print(const char *name, u64 x) {
    char line[64];
    int n = 0;
    while (name[n] && n < 40) line[n] = name[n], n++;
    line[n++] = ' ';
    for (int i = 60; i >= 0; i -= 4) line[n++] = "0123456789abcdef"[x >> i & 15];
    line[n++] = '\n';
    SYS3(NR_write, 1, line, n);
}

static inline u64 hash(u64 h, u64 x) { return (h << 9 | h >> 55) * 0x1e3779b1 ^ x; }

// Something writable: the reference reads debug info only of files that have a writable mapping.
u64 rt_data[2] = {1, 2};

struct action {
    void (*handler)(int, void *, void *);
    u64 flags;
    void (*restorer)(void);
    u64 mask;
};
void restore(void);
__asm__(".text\n.globl restore\n.type restore, @function\nrestore: mov $15, %eax\nsyscall\n.size restore, . - restore");

__attribute__((unused)) static void handle(int sig, void (*f)(int, void *, void *), u64 flags) {
    struct action a = {f, flags | 0x04000004, restore, 0};
    SYS4(NR_rt_sigaction, sig, &a, 0, 8);
}

// Registers in a ucontext, as an index into its 64-bit words.
enum { UC_R8 = 5, UC_RDI = 13, UC_RSI, UC_RBP, UC_RBX, UC_RDX, UC_RAX, UC_RCX, UC_RSP, UC_RIP, UC_FLAGS };

int run(i64 *stack);
__attribute__((used)) static void enter(i64 *stack) {
    SYS1(NR_exit_group, run(stack));
    __builtin_unreachable();
}
__asm__(".text\n.globl _start\n.type _start, @function\n_start: mov %rsp, %rdi\nand $-16, %rsp\ncall enter\nhlt\n"
        ".size _start, . - _start");
