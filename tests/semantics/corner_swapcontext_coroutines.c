#include "sem.h"
static ucontext_t mainc, co[3];
static char stacks[3][65536];
static void f(int k) { for (int i = 0; i < 200; i++) { if (i % 50 == 0) printf("%d:%d\n", k, i); swapcontext(co + k, co + (k + 1) % 3); } }
int main(void) {
    for (int k = 0; k < 3; k++) { getcontext(co + k); co[k].uc_stack.ss_sp = stacks[k]; co[k].uc_stack.ss_size = sizeof stacks[k]; co[k].uc_link = &mainc; makecontext(co + k, (void (*)(void))f, 1, k); }
    swapcontext(&mainc, co);
    printf("back\n");
}
