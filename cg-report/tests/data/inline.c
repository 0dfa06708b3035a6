/* A loop of inlined functions, for tests. */
static volatile long seed = 3;
static inline __attribute__((always_inline)) long twice(long x) { return x * seed + x; }
static inline __attribute__((always_inline)) long step(long x) { return twice(x) + twice(x + 1) % 7; }
__attribute__((noinline)) long work(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++) sum += step(i);
    return sum + twice(sum);
}
__attribute__((noreturn)) void _start(void) {
    long r = work(50);
    __asm__ volatile("syscall" : : "a"(60L), "D"(r & 0) : "memory");
    __builtin_unreachable();
}
