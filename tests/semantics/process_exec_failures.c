#include "sem.h"
int main(void) {
    char *a[] = {"x", 0};
    printf("%d", execv("/nonexistent", a)); puts(strerror(errno));
    printf("%d", execv("/etc/passwd", a)); puts(strerror(errno));
    printf("%d", execv("/", a)); puts(strerror(errno));
    FILE *f = fopen("bad", "w");
    fputs("no program", f), fclose(f), system("chmod +x bad");
    printf("%d", execv("bad", a)); puts(strerror(errno));
    f = fopen("bad2", "w");
    fputs("#!/nonexistent/interpreter\n", f), fclose(f), system("chmod +x bad2");
    printf("%d", execv("./bad2", a)); puts(strerror(errno));
}
