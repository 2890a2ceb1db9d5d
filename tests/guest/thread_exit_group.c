/* exit() and exec from one thread while others compute, block and create threads: all end, the status is right. */
#include "guest.h"

static int fds[2];
static void *spin(void *arg) {
    for (volatile long i = 0;; i++) {}
    return arg;
}
static void *block(void *arg) {
    char c;
    (void)!read(fds[0], &c, 1);
    return arg;
}
static void *leaf(void *arg) { return arg; }
static void *create(void *arg) {
    for (;;) {
        pthread_t t;
        if (!pthread_create(&t, NULL, leaf, NULL)) pthread_join(t, NULL);
    }
    return arg;
}
static void *ends(void *arg) {
    sleep_ms(5);
    if ((long)arg == 0) exit(11);
    if ((long)arg == 1) syscall(SYS_exit_group, 12);
    if ((long)arg == 2) execl("/bin/sh", "sh", "-c", "exit 13", NULL);
    if ((long)arg == 3) abort();
    return arg;
}

int main(void) {
    CHECK(pipe(fds) == 0);
    for (long how = 0; how < 4; how++)
        for (int i = 0; i < 5; i++) {
            pid_t pid = fork();
            if (!pid) {
                pthread_t t;
                pthread_create(&t, NULL, spin, NULL), pthread_create(&t, NULL, block, NULL);
                pthread_create(&t, NULL, create, NULL), pthread_create(&t, NULL, ends, (void *)how);
                spin(NULL);
            }
            const char *s = wait_text(pid);
            if (i == 0)
                printf("way %ld: %s\n", how, s);
            else
                CHECK(strcmp(s, how == 0 ? "exit 11" : how == 1 ? "exit 12" : how == 2 ? "exit 13" : "signal 6") == 0);
        }
    return finish();
}
