#include "sem.h"
int main(void) {
    for (int i = 0; i < 5; i++) fork();
    int n = 1;
    for (int s; wait(&s) > 0;) n += WEXITSTATUS(s);
    
    
    if (n == 32) printf("%d\n", n);
    return n;
}
