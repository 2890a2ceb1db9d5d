/* posix_spawn: file actions, attributes, failures, many in a row and from several threads at once; system, popen. */
#include "guest.h"
#include <spawn.h>

extern char **environ;
static void *spawns(void *arg) {
    long ok = 0;
    for (int i = 0; i < 15; i++) {
        char code[16], *argv[] = {"sh", "-c", code, NULL};
        snprintf(code, sizeof code, "exit %d", i + 1);
        pid_t pid;
        int st;
        if (posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ)) continue;
        waitpid(pid, &st, 0);
        ok += WIFEXITED(st) && WEXITSTATUS(st) == i + 1;
    }
    (void)arg;
    return (void *)ok;
}

int main(void) {
    pid_t pid;
    char *argv[] = {"sh", "-c", "read x; echo \"got $x\"; echo err >&2; echo five >&5", NULL};
    int fd = open("spawn.in", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(write(fd, "line\n", 5) == 5);
    close(fd);
    posix_spawn_file_actions_t fa;
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_addopen(&fa, 0, "spawn.in", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&fa, 5, "spawn.out", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&fa, 1, 2);
    posix_spawn_file_actions_addclose(&fa, 9);
    CHECK(posix_spawn(&pid, "/bin/sh", &fa, NULL, argv, environ) == 0);
    puts(wait_text(pid));
    char text[64] = "";
    slurp("spawn.out", text, sizeof text);
    printf("file: %s", text);
    unlink("spawn.in"), unlink("spawn.out");

    CHECK(posix_spawn(&pid, "/nonexistent", NULL, NULL, argv, environ) == ENOENT);
    CHECK(posix_spawn(&pid, "/etc/passwd", NULL, NULL, argv, environ) == EACCES);
    CHECK(posix_spawnp(&pid, "no-such-program-here", NULL, NULL, argv, environ) == ENOENT);
    CHECK(posix_spawnp(&pid, "true", NULL, NULL, (char *[]){"true", NULL}, environ) == 0);
    puts(wait_text(pid));

    posix_spawnattr_t at;
    posix_spawnattr_init(&at);
    sigset_t s;
    sigemptyset(&s), sigaddset(&s, SIGUSR1);
    posix_spawnattr_setsigmask(&at, &s), posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    char *self[] = {"sh", "-c", "kill -USR1 $$; echo blocked; kill -TERM $$", NULL};
    posix_spawn(&pid, "/bin/sh", NULL, &at, self, environ);
    puts(wait_text(pid));

    pthread_t t[4];
    void *r;
    long sum = 0;
    for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, spawns, NULL);
    for (int i = 0; i < 4; i++) pthread_join(t[i], &r), sum += (long)r;
    printf("from threads: %ld\n", sum);
    printf("system: %s\n", status_text(system("exit 6")));
    printf("system: %s\n", status_text(system("kill -9 $$")));
    FILE *p = popen("echo one; echo two", "r");
    char line[32];
    while (fgets(line, sizeof line, p)) printf("popen: %s", line);
    printf("pclose: %s\n", status_text(pclose(p)));
    return finish();
}
