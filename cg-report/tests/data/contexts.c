/* Functions that are reached by several callers, and one that calls itself: what contexts tell apart. Of this are
   contexts.cg (grind --tool=callgrind --cache-sim=yes --dump-instr=yes --separate-callers=3 --separate-recs=3) and
   contexts-plain.cg (with neither callers nor levels of recursion: --separate-recs=1). */
static volatile int sink;

__attribute__((noinline)) static void leaf(int n) { for (int i = 0; i < n; i++) sink += i; }
__attribute__((noinline)) static void shared(int n) { leaf(n); leaf(1); sink++; }
__attribute__((noinline)) static void left(void) { for (int i = 0; i < 3; i++) shared(40); sink++; }
__attribute__((noinline)) static void right(void) { shared(5); sink++; }
__attribute__((noinline)) static int down(int n) { sink += n; return n ? down(n - 1) + sink : sink; }

int main(void) { left(); right(); down(6); return 0; }

/* gcc -g -O1 -fno-optimize-sibling-calls -fno-stack-protector -ffreestanding -static -nostdlib -fno-pie -no-pie */
__attribute__((force_align_arg_pointer)) void _start(void) { main(); __asm__ volatile("syscall" : : "a"(60), "D"(0)); }
