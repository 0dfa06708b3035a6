// What the C programs for the simulations share: an entry point that sets the stack to a fixed place and calls run().
typedef unsigned char u8;
typedef unsigned int u32;
typedef long i64;
typedef unsigned long u64;

// Something writable: the reference reads debug info only of files that have a writable mapping.
u64 rt_data[2] = {1, 2};

void *memcpy(void *to, const void *from, u64 n) {
    for (u64 i = 0; i < n; i++) ((volatile u8 *)to)[i] = ((const u8 *)from)[i];
    return to;
}
void *memset(void *to, int c, u64 n) {
    for (u64 i = 0; i < n; i++) ((volatile u8 *)to)[i] = c;
    return to;
}

u8 stack[16384] __attribute__((aligned(4096)));

__attribute__((noinline)) int run(void);
__attribute__((used)) static void enter(void) {
    __asm__ volatile("syscall" : : "a"(231), "D"((i64)run()) : "rcx", "r11", "memory");
    __builtin_unreachable();
}
__asm__(".text\n.globl _start\n.type _start, @function\n_start: lea stack+16128(%rip), %rsp\ncall enter\nhlt\n"
        ".size _start, . - _start");
