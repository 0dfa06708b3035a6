// Waits for the end of a thread in one system call, whether it has ended already or not. Who joins it or asks again and again executes
// more or less, as it happens to come; who sleeps for a while may wake too early on a machine that is busy.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

// What the thread begins with. It cannot be joined then. `lives` is 1 before it is created; when it has executed its last instruction,
// the kernel writes zero there, and wakes who waits (set_tid_address(2)).
static void tells_of_its_end(int *lives) { syscall(SYS_set_tid_address, lives); }

// What its creator does.
static void has_ended(int *lives)
{
    long result;
    register const void *forever __asm__("r10") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"((long)SYS_futex), "D"(lives), "S"((long)FUTEX_WAIT), "d"(1L), "r"(forever)
                     : "rcx", "r11", "memory");
}
