// Functions that cost something else for each of their callers, also in a cycle: what only whole chains of calls tell.
static volatile unsigned sink;
__attribute__((noinline)) static void spin(unsigned n) { while (n--) sink += n; }
__attribute__((noinline)) static void shared(unsigned n) { spin(n); }
__attribute__((noinline)) static void cheap(void) { for (unsigned i = 0; i < 100; i++) shared(3); }
__attribute__((noinline)) static void dear(void) { shared(20000); }
__attribute__((noinline)) static unsigned odd(unsigned n);
__attribute__((noinline)) static unsigned even(unsigned n) { spin(10); return n ? odd(n - 1) + 1 : 0; }
__attribute__((noinline)) static unsigned odd(unsigned n) { spin(500); return n ? even(n - 1) + 1 : 0; }
int main(void)
{
    cheap();
    dear();
    sink += even(8);
    sink += odd(3);
    return 0;
}
