/* exec with a full descriptor table that cannot grow: binaries, scripts, through descriptors, from a thread. */
#include "guest.h"
#include <sys/prctl.h>
#include <sys/resource.h>

static void fill(void) {
    while (open("/dev/null", O_RDONLY) >= 0) {}
    CHECK(errno == EMFILE);
}
static void report(const char *what, pid_t pid) { printf("%s: %s\n", what, wait_text(pid)); }
static void *exec_in_thread(void *arg) {
    execl("/bin/echo", "echo", "from a thread", NULL);
    _exit(9);
    return arg;
}

int main(void) {
    closefrom(3);
    int script = open("script", O_WRONLY | O_CREAT | O_TRUNC, 0755);
    CHECK(write(script, "#!/bin/sh\necho script \"$@\"\n", 27) == 27);
    close(script);
    struct rlimit lim = {24, 24};
    CHECK(setrlimit(RLIMIT_NOFILE, &lim) == 0);
    pid_t pid = fork();
    if (!pid) fill(), execl("/bin/echo", "echo", "full", NULL), _exit(9);
    report("full", pid);
    pid = fork();
    if (!pid) fill(), close(20), close(21), execl("./script", "x", "one", "two", NULL), _exit(9);
    report("script", pid);
    pid = fork();
    if (!pid) {
        fill(), close(20);
        int fd = open("/bin/echo", O_RDONLY);
        char *argv[] = {"echo", "by descriptor", NULL};
        fexecve(fd, argv, argv + 2);
        _exit(9);
    }
    report("descriptor", pid);
    pid = fork();
    if (!pid) fill(), CHECK(execl("/bin/none", "none", NULL) == -1 && errno == ENOENT), _exit(failures);
    report("missing", pid);
    pid = fork();
    if (!pid) fill(), CHECK(execl("/etc/passwd", "none", NULL) == -1 && errno == EACCES), _exit(failures);
    report("not executable", pid);
    pid = fork();
    if (!pid) {
        fill();
        pthread_t t;
        pthread_create(&t, NULL, exec_in_thread, NULL), pthread_join(t, NULL);
    }
    report("thread", pid);
    pid = fork();
    if (!pid) {
        lim.rlim_cur = 3, setrlimit(RLIMIT_NOFILE, &lim);
        execl("/bin/echo", "echo", "limit of three", NULL), _exit(9);
    }
    report("three", pid);
    unlink("script");
    return finish();
}
