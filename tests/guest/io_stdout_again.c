/* Standard output by other ways than descriptor 1: what is written is repeated by a replay all the same. */
#include "guest.h"

#include <sys/resource.h>

static void say_to(int fd, const char *text) {
    CHECK(fd >= 0);
    if (fd >= 0) CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

int main(int argc, char **argv) {
    if (argc > 1) {
        say_to(1, "executed with a full table\n");
        return 0;
    }
    int fd, high = fcntl(1, F_DUPFD, 300);
    say_to(high, "a high number\n");
    close(high);
    int pidfd = syscall(SYS_pidfd_open, getpid(), 0);
    fd = syscall(SYS_pidfd_getfd, pidfd, 1, 0);
    say_to(fd, "pidfd_getfd\n");
    close(fd);
    close(pidfd);

    /* every number is taken and given back; processes can still be started */
    struct rlimit l = {2000, 2000};
    setrlimit(RLIMIT_NOFILE, &l);
    for (fd = 3; fd < 2000; fd++) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        CHECK(dup2(2, fd) == fd);
        close(fd);
    }
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", argv[0], "again", NULL);
        _exit(9);
    }
    printf("%s\n", wait_text(pid));
    return finish();
}
