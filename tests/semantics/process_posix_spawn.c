#include "sem.h"
#include <spawn.h>
extern char **environ;
int main(void) {
    for (int i = 0; i < 5; i++) {
        pid_t p;
        posix_spawn_file_actions_t a;
        posix_spawn_file_actions_init(&a);
        posix_spawn_file_actions_adddup2(&a, 1, 2);
        char *argv[] = {"sh", "-c", "echo spawned >&2; exit 4", 0};
        CHECK(posix_spawnp(&p, "sh", &a, 0, argv, environ) == 0);
        int s;
        waitpid(p, &s, 0);
        show_status(s);
        char *bad[] = {"nonexistent", 0};
        printf("%s\n", strerror(posix_spawn(&p, "/nonexistent", 0, 0, bad, environ)));
    }
}
