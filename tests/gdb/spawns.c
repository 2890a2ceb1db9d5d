/* A child that shares its parent's memory until it executes another program. */
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>

extern char **environ;

int main(void) {
    char *args[] = {"true", NULL};
    int pid, status = 1;
    if (posix_spawn(&pid, "/bin/true", NULL, NULL, args, environ) == 0) waitpid(pid, &status, 0);
    printf("%d\n", status);
    return status;
}
