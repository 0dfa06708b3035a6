#include "sem.h"
#include <sys/stat.h>
int main(void) {
    char *a[] = {"x", 0};
    printf("%d", execv("/nonexistent", a)); puts(strerror(errno));
    printf("%d", execv("/etc/passwd", a)); puts(strerror(errno));
    printf("%d", execv("/", a)); puts(strerror(errno));
    FILE *f = fopen("bad", "w");
    fputs("no program", f), fclose(f), chmod("bad", 0755);
    printf("%d", execv("bad", a)); puts(strerror(errno));
    f = fopen("bad2", "w");
    fputs("#!/nonexistent/interpreter\n", f), fclose(f), chmod("bad2", 0755);
    printf("%d", execv("./bad2", a)); puts(strerror(errno));
}
