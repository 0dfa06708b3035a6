#include "sem.h"
/* After a fork, both processes map a file of their own at the same address, one after the other, and run what is in it: code that
   is not writable, and was there in neither of them when they parted. A thread beside them maps and unmaps all the while. */
#include <pthread.h>

typedef int function(void);

static function *code_of(const char *name, int value) {
    unsigned char c[] = {0xb8, value, 0, 0, 0, 0xc3};
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0700);
    if (write(fd, c, sizeof c) != sizeof c) return 0;
    void *at = mmap((void *)0x700000000, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0);
    close(fd);
    unlink(name);
    return at == MAP_FAILED ? 0 : (function *)at;
}

static volatile int over;

static void *maps(void *argument) {
    while (!over) {
        unsigned char c[] = {0xb8, 1, 0, 0, 0, 0xc3};
        unsigned char *p = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int i = 0; i < 3; i++) {
            c[1] = i + 5;
            memcpy(p, c, sizeof c);
            if (((function *)p)() != i + 5) printf("made code gives another value\n");
        }
        munmap(p, 4096);
    }
    return argument;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, maps, 0);
    long sum = 0;
    for (int i = 0; i < 20; i++) {
        int to_child[2], to_parent[2], status;
        char b = 0;
        if (pipe(to_child) || pipe(to_parent)) return 1;
        pid_t child = fork();
        if (!child) {
            function *f = code_of("code.child", 3);
            int first = f ? f() : -1;
            if (write(to_parent[1], &b, 1) != 1 || read(to_child[0], &b, 1) != 1) _exit(90);
            _exit(f && first == 3 && f() == 3 ? 7 : 91);
        }
        if (read(to_parent[0], &b, 1) != 1) return 1;
        function *f = code_of("code.parent", 4);
        sum = sum * 7 % 1000003 + (f ? f() : -1);
        if (write(to_child[1], &b, 1) != 1) return 1;
        waitpid(child, &status, 0);
        sum = sum * 7 % 1000003 + (f ? f() : -1) + status;
        munmap((void *)f, 4096);
        close(to_child[0]), close(to_child[1]), close(to_parent[0]), close(to_parent[1]);
    }
    over = 1;
    pthread_join(thread, 0);
    printf("%ld\n", sum);
}
