/* waitid() by a pidfd that does not block: EAGAIN while the child runs. The kernel writes to the siginfo when it fails, too. */
#include "guest.h"
#include <sys/wait.h>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

static void show(const char *what, int fd, int options) {
    siginfo_t info;
    memset(&info, 0x55, sizeof info);
    long ret = syscall(SYS_waitid, P_PIDFD, fd, &info, options, NULL);
    printf("%s: %s, signo %d, code %d, status %#x\n", what, ret ? strerror(errno) : "done", info.si_signo, info.si_code,
           info.si_status);
}

int main(void) {
    int go[2];
    char byte;
    CHECK(pipe(go) == 0);
    pid_t pid = fork();
    if (!pid) {
        close(go[1]);
        _exit(read(go[0], &byte, 1) == 1 ? 7 : 8);
    }
    int fd = (int)syscall(SYS_pidfd_open, pid, O_NONBLOCK);
    if (fd < 0) return 77;
    show("running", fd, WEXITED);
    show("running, not to wait for", fd, WEXITED | WNOHANG);
    show("no such option", fd, 0);
    CHECK(write(go[1], "", 1) == 1);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    CHECK(poll(&p, 1, -1) == 1);
    show("ended", fd, WEXITED);
    show("gone", fd, WEXITED);
    return finish();
}
