/* Dropping privileges in every thread, and going on: threads, fork, exec, files of others refused. Needs root, else skips. */
#include "guest.h"
#include <grp.h>
#include <sys/prctl.h>

static void *ids(void *arg) {
    (void)arg;
    return (void *)(long)(getuid() == 65534 && syscall(SYS_geteuid) == 65534);
}
static volatile int stage;
static void *waits(void *arg) {
    while (!stage) sched_yield();
    return ids(arg);
}

int main(void) {
    if (getuid()) {
        puts("needs root");
        return 77;
    }
    pthread_t before, t;
    void *r;
    int secret = open("secret", O_CREAT | O_WRONLY, 0600);
    close(secret);
    pthread_create(&before, NULL, waits, NULL);
    CHECK(setgroups(0, NULL) == 0 && setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
    stage = 1;
    pthread_join(before, &r);
    printf("other thread changed too: %ld\n", (long)r);
    pthread_create(&t, NULL, ids, NULL), pthread_join(t, &r);
    printf("new thread: %ld\n", (long)r);
    CHECK(setuid(0) == -1 && errno == EPERM);
    CHECK(open("secret", O_RDONLY) == -1 && errno == EACCES);
    CHECK(getuid() == 65534 && geteuid() == 65534 && getgid() == 65534);
    pid_t pid = fork();
    if (!pid) execl("/bin/sh", "sh", "-c", "echo uid $(id -u)", NULL), _exit(1);
    puts(wait_text(pid));
    printf("dumpable %d\n", prctl(PR_GET_DUMPABLE));
    CHECK(readlink("/proc/self/exe", (char[100]){0}, 99) > 0 || errno == EACCES || errno == EPERM);
    char maps[100];
    printf("own maps readable: %d\n", slurp("/proc/self/maps", maps, sizeof maps) > 0);
    return finish();
}
