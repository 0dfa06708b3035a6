// Code that a call other than mmap, munmap or mprotect puts in the place of other code: what is there now runs.
#define _GNU_SOURCE
#include "int80.h"
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
static void set(unsigned char *p, int value) { p[0] = 0xb8, memcpy(p + 1, &value, 4), p[5] = 0xc3; } // mov eax, value; ret
static int run(unsigned char *p) { return ((int (*)(void))p)(); }
static unsigned char *const at = (unsigned char *)0x20000000;

// A segment with a function that returns `value`.
static int segment(int value) {
    int id = shmget(IPC_PRIVATE, 8192, IPC_CREAT | 0700);
    CHECK(id >= 0);
    unsigned char *p = shmat(id, 0, 0);
    CHECK(p != (void *)-1);
    set(p, value), set(p + 4096, value + 1);
    CHECK(shmdt(p) == 0);
    return id;
}

int main(void) {
    int ids[4];
    for (int i = 0; i < 4; i++) ids[i] = segment(10 * i);

    // Attached over what is attached there, by each of the three ways to say so.
    CHECK(shmat(ids[0], at, SHM_EXEC) == at);
    printf("%d %d\n", run(at), run(at + 4096));
    CHECK(shmat(ids[1], at + 77, SHM_EXEC | SHM_REMAP | SHM_RND) == at);
    printf("%d %d\n", run(at), run(at + 4096));
    CHECK(int80(397, ids[2], (long)at, SHM_EXEC | SHM_REMAP, 0, 0) == (long)at);
    printf("%d %d\n", run(at), run(at + 4096));
    unsigned *answer = mmap((void *)0x30000000, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(int80(117, 21, ids[3], SHM_EXEC | SHM_REMAP, (long)answer, (long)at) == 0 && *answer == (unsigned long)at);
    printf("%d %d\n", run(at), run(at + 4096));
    for (int i = 0; i < 4; i++) shmctl(ids[i], IPC_RMID, 0);
    CHECK(shmdt(at) == 0);

    // Other pages of the same file.
    int file = memfd_create("code", 0);
    CHECK(file >= 0 && ftruncate(file, 4 * 4096) == 0);
    unsigned char *w = mmap(0, 4 * 4096, 3, MAP_SHARED, file, 0);
    for (int i = 0; i < 4; i++) set(w + 4096 * i, 100 + i);
    CHECK(munmap(w, 4 * 4096) == 0);
    CHECK(mmap(at, 8192, 5, MAP_SHARED | MAP_FIXED, file, 0) == at);
    printf("%d %d\n", run(at), run(at + 4096));
    CHECK(syscall(SYS_remap_file_pages, at, 4096, 0, 2, 0) == 0);
    printf("%d %d\n", run(at), run(at + 4096));
    CHECK(int80(257, (long)at + 4096, 4096, 0, 3, 0) == 0);
    printf("%d %d\n", run(at), run(at + 4096));

    // What was written over a file's code is thrown away: twice made writable for it, twice writable all the time.
    for (int always = 0; always < 2; always++) {
        CHECK(mmap(at, 4096, always ? 7 : 5, MAP_PRIVATE | MAP_FIXED, file, 0) == at);
        printf("%d", run(at));
        for (int way = 0; way < 2; way++) {
            if (!always) CHECK(mprotect(at, 4096, 3) == 0);
            set(at, 500 + way);
            if (!always) CHECK(mprotect(at, 4096, 5) == 0);
            printf(" %d", run(at));
            if (way) CHECK(int80(219, (long)at, 4096, MADV_DONTNEED, 0, 0) == 0);
            else CHECK(madvise(at, 4096, MADV_DONTNEED) == 0);
            printf(" %d", run(at));
        }
        printf("\n");
    }
}
