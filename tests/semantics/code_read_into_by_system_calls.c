// Code is overwritten by the kernel: read, recv and readv into writable and executable memory that has just been running.
#include "sem.h"
#include <sys/socket.h>
#include <sys/uio.h>

int main(void) {
    unsigned char *page = mmap(0, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    unsigned char code[6] = {0xb8, 0, 0, 0, 0, 0xc3}; // mov eax, n; ret
    int (*f)(void) = (int (*)(void))page;
    int fds[2], sock[2], sum = 0;
    CHECK(pipe(fds) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sock) == 0);
    for (int round = 0; round < 30; round++) {
        code[1] = (unsigned char)round;
        ssize_t got;
        if (round % 3 == 0) {
            CHECK(write(fds[1], code, 6) == 6);
            got = read(fds[0], page, 6);
        } else if (round % 3 == 1) {
            CHECK(write(sock[1], code, 6) == 6);
            got = recv(sock[0], page, 6, 0);
        } else {
            CHECK(write(fds[1], code, 6) == 6);
            struct iovec v[2] = {{page, 3}, {page + 3, 3}};
            got = readv(fds[0], v, 2);
        }
        CHECK(got == 6);
        sum += f();
    }
    printf("%d\n", sum);
    // What is wrong remains wrong.
    CHECK(write(fds[1], code, 6) == 6);
    void *volatile nowhere = (void *)8;
    printf("%zd", read(fds[0], nowhere, 6));
    printf(" %s\n", strerror(errno));
    return 0;
}
