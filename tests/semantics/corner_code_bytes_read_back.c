#include "sem.h"
int main(void) {
    unsigned char *p = (unsigned char *)(void *)work;
    unsigned long h = 0, again = 0;
    for (int i = 0; i < 40; i++) h = h * 31 + p[i];
    work(10);
    for (int i = 0; i < 40; i++) again = again * 31 + p[i];
    printf("%d\n", h == again);
}
