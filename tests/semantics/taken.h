// All that instructions can do with register R, which is REG in a context; functions are called NAME(...).

// The registers of an interrupted loop that counts in r11.
static void NAME(tick)(int s UNUSED, siginfo_t *i UNUSED, void *v) {
    unsigned long at = ((ucontext_t *)v)->uc_mcontext.gregs[REG];
    // It may come before the timer is off.
    if (!counting) return;
    signals++;
    odd += at < last || at > 100000000;
    last = at;
}

// A handler that changes it.
static void NAME(fault)(int s UNUSED, siginfo_t *i, void *v) {
    greg_t *g = ((ucontext_t *)v)->uc_mcontext.gregs;
    printf("fault at %p, " R " %llx\n", i->si_addr, g[REG]);
    g[REG] = (greg_t)memory;
}

unsigned long NAME(called)(void) {
    unsigned long r;
    __asm__ volatile("mov %%" R ", %0" : "=r"(r));
    return r + 1;
}

static void NAME(operands)(void) {
    unsigned long a, b, c, d;
    for (int i = 0; i < 64; i++) memory[i] = 0x0102030405060708 * i + i;
    __asm__ volatile("mov $0x8877665544332211, %%" R "\nmov $0xab, %%" R "b\nmov $0xcdef, %%" R "w\nmov %%" R ", %0\nmov $7, %%" R "d\nmov %%" R ", %1\n"
                     "xchg %%" R ", %1\nxchg %%" R "b, %%al\nbswap %%" R "\nmov %%" R ", %2\nimul $3, %%" R ", %%" R "\nmov %%" R ", %3"
                     : "=&r"(a), "=&r"(b), "=&r"(c), "=&r"(d) : : "rax", R);
    printf("%lx %lx %lx %lx\n", a, b, c & ~0xfful << 56, d & 0);
    __asm__ volatile("mov %4, %%" R "\nmov 8(%%" R "), %0\nmov $5, %%" R "d\nmov (%4,%%" R ",8), %1\nlea 3(%%" R ",%%" R ",4), %2\n"
                     "lea 8(,%%" R ",8), %%" R "\nadd %4, %%" R "\npush (%%" R ")\npop 8(%%" R ")\nmov 8(%%" R "), %3\n"
                     : "=&r"(a), "=&r"(b), "=&r"(c), "=&r"(d) : "r"(memory) : R, "memory", "cc");
    printf("%lx %lx %lx %lx\n", a, b, c, d);
    // Atomic ones, with rax, rbx, rcx and rdx in use.
    __asm__ volatile("mov %2, %%" R "\nmov (%%" R "), %%rax\nmov 8(%%" R "), %%rdx\nmov $1, %%ebx\nmov $2, %%ecx\nlock cmpxchg16b (%%" R ")\nsetz %%" R "b\n"
                     "movzx %%" R "b, %%" R "\nmov %%" R ", %0\nlock xadd %%" R ", 16(%2)\nmov %%" R ", %1"
                     : "=&r"(a), "=&r"(b) : "r"(memory) : "rax", "rbx", "rcx", "rdx", R, "memory", "cc");
    printf("%lx %lx %lx %lx %lx\n", a, b, memory[0], memory[1], memory[2]);
    // Bit strings, multiplications, divisions, conditions.
    __asm__ volatile("mov %3, %%" R "\nbtsq $5, 24(%%" R ")\nmov $-70, %%" R "\nbts %%" R ", 64(%3)\nmov $1000, %%" R "d\nbtc %%" R "d, 64(%3)\nmov $-3, %%" R "\n"
                     "bts %%" R "w, 64(%3)\nmov $100, %%eax\nmov $7, %%" R "d\nxor %%edx, %%edx\ndiv %%" R "\nmov %%rdx, %%" R "\nmov %%" R ", %0\n"
                     "mov $-1, %%rax\nmul %%" R "\nmov %%rdx, %1\ncmp $1, %%" R "\ncmove %%rax, %%" R "\nmov %%" R ", %2"
                     : "=&r"(a), "=&r"(b), "=&r"(c) : "r"(memory) : "rax", "rdx", R, "memory", "cc");
    d = 0;
    for (int i = 0; i < 64; i++) d = d * 31 + memory[i];
    printf("%lx %lx %lx %lx\n", a, b, c, d);
    // The stack.
    __asm__ volatile("mov %%rsp, %%" R "\nsub $256, %%rsp\nand $-64, %%rsp\npush %%" R "\npush $99\npop %%" R "\nmov %%" R ", %0\npop %%" R "\n"
                     "xchg %%" R ", %%rsp\nxchg %%" R ", %%rsp\nmov %%" R ", %%rsp\nlea -8(%%rsp), %%" R "\nsub %%rsp, %%" R "\nmov %%" R ", %1"
                     : "=&r"(a), "=&r"(b) : : R, "memory", "cc");
    printf("%lx %lx\n", a, b);
    // Vector registers, and addresses relative to rip and eip.
    __asm__ volatile("mov $0x1234567, %%" R "\nmovq %%" R ", %%xmm0\npinsrw $3, %%" R "d, %%xmm0\nmovq %%xmm0, %%" R "\nmov %%" R ", %0\n"
                     "mov far_word(%%rip), %%" R "\nmov %%" R ", %1\nlea far_word(%%rip), %%" R "\nmovups (%%" R "), %%xmm0\ncvtsi2sd %%" R "d, %%xmm1\n"
                     "mov $-5, %%" R "\ncvtsi2sd %%" R ", %%xmm1\ncvttsd2si %%xmm1, %%" R "\nmov %%" R ", %2\nrol $9, %%" R "\nmov $3, %%ecx\nshl %%cl, %%" R "\nmov %%" R ", %3"
                     : "=&r"(a), "=&r"(b), "=&r"(c), "=&r"(d) : : "rcx", R, "xmm0", "xmm1", "memory", "cc");
    printf("%lx %lx %lx %lx\n", a, b, c, d);
}

static void NAME(transfers)(void) {
    unsigned long a, b, c, d;
    void *table[4] = {NAME(called), NAME(called), NAME(called), NAME(called)};
    __asm__ volatile("sub $128, %%rsp\nlea " R "_called(%%rip), %%" R "\ncall *%%" R "\nlea " R "_called(%%rip), %%" R "\nsub %%" R ", %%rax\nmov %%rax, %0\n"
                     "mov %4, %%" R "\ncall *8(%%" R ")\nmov %4, %%" R "\nsub %%" R ", %%rax\nmov %%rax, %1\nmov $3, %%" R "d\nmov %4, %%rcx\ncall *(%%rcx,%%" R ",8)\nmov %%rax, %2\n"
                     "lea 1f(%%rip), %%" R "\njmp *%%" R "\nud2\n1: lea 2f(%%rip), %%" R "\nmov %%" R ", (%4)\nlea -8(%4), %%" R "\njmp *8(%%" R ")\nud2\n"
                     "2: lea 3f(%%rip), %%" R "\npush %%" R "\nret\n3: sub %4, %%" R "\nadd $128, %%rsp\nmov %%" R ", %3"
                     : "=&r"(a), "=&r"(b), "=&r"(c), "=&r"(d) : "r"(table) : "rax", "rcx", R, "memory", "cc");
    printf("%lx %lx %lx %d\n", a, b, c, d != 0);
}

static void NAME(segments)(void) {
    static unsigned long area[4] = {11, 22, 33, 44};
    unsigned long a, b, c;
    CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, area) == 0);
    __asm__ volatile("mov $8, %%" R "d\nmov %%gs:8(%%" R "), %0\nmov %%" R ", %%gs:(%%" R ")\nmov %%gs:8, %%" R "\nmov %%" R ", %1\nxor %%" R "d, %%" R "d\nmov %%fs:(%%" R "), %%" R "\n"
                     "mov %%fs:0, %2\nsub %%" R ", %2" : "=&r"(a), "=&r"(b), "=&r"(c) : : R, "memory", "cc");
    printf("%lx %lx %lx\n", a, b, c);
    __asm__ volatile("lea 1f(%%rip), %%rax\nmov %%rax, %0\nmov $16, %%" R "d\njmp *%%gs:(%%" R ")\nud2\n1:" : "=m"(area[2]) : : "rax", R, "memory");
    CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, 0) == 0);
}

static void NAME(calls)(void) {
    unsigned long a, b;
    // A system call leaves the flags in it.
    __asm__ volatile("mov $39, %%eax\nmov $77, %%" R "d\ncmp %%" R ", %%" R "\nsyscall\nmov %%" R ", %0\nstc\nmov $39, %%eax\nsyscall\nmov %%" R ", %1"
                     : "=&r"(a), "=&r"(b) : : "rax", "rcx", R, "memory", "cc");
    printf("%lx %lx\n", a & 0xcd5, b & 0x401);
    // It survives what stops a thread: a child, and an instruction that is emulated.
    unsigned eax = 0, ebx, ecx = 0, edx;
    __asm__ volatile("mov $0x5678, %%" R "d\ncpuid\nmov %%" R ", %4" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx), "=m"(a) : : R);
    printf("%lx\n", a);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        __asm__ volatile("mov $0x99, %%" R "d\nint3\nmov %%" R ", %0" : "=m"(b) : : R, "memory");
        printf("%lx\n", b);
        fflush(stdout);
        _exit(3);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    show_status(status);
}

static void NAME(areas)(void) {
    static char area[4096] __attribute__((aligned(64)));
    unsigned long a;
    __asm__ volatile("mov %1, %%" R "\nfxsave (%%" R ")\nfxrstor (%%" R ")\nmov $3, %%eax\nxor %%edx, %%edx\nxsave 1024(%%" R ")\nmov $3, %%eax\nxor %%edx, %%edx\n"
                     "mov $1024, %%" R "d\nxrstor (%1,%%" R ",1)\nmov %%" R ", %0" : "=&r"(a) : "r"(area) : "rax", "rdx", R, "memory");
    printf("%lx\n", a);
    // Repeated ones leave it alone.
    __asm__ volatile("mov $0x4321, %%" R "d\nmov %1, %%rdi\nmov $100, %%ecx\nrep stosb\nmov %1, %%rdi\nmov $200, %%ecx\nrepe scasb\nmov %%" R ", %0"
                     : "=&r"(a) : "r"(area) : "rcx", "rdi", R, "memory", "cc");
    printf("%lx\n", a);
}

static void NAME(all)(void) {
    NAME(operands)();
    NAME(transfers)();
    NAME(segments)();
    on(SIGTRAP, NAME(tick), 0);
    NAME(calls)();
    NAME(areas)();
    on(SIGSEGV, NAME(fault), 0);
    unsigned long a;
    __asm__ volatile("mov $0x10, %%" R "d\nmovq 24(%%" R "), %%rax\nmov %%rax, %0" : "=&r"(a) : : "rax", R, "memory");
    printf("%d\n", a == memory[3]);
    on(SIGALRM, NAME(tick), 0);
    last = signals = 0;
    every(3000);
    __asm__ volatile("xor %%" R "d, %%" R "d\nmovl $1, %1\n1: inc %%" R "\ncmp $100000000, %%" R "\njb 1b\nmovl $0, %1\nmov %%" R ", %0"
                     : "=&r"(a), "=m"(counting) : : R, "cc");
    every(0);
    printf("%lu %d %d\n", a, signals > 3, odd);
}
