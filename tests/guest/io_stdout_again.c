/* Standard output by other ways than descriptor 1: what is written is repeated by a replay all the same. */
#include "guest.h"

#include <sys/resource.h>
#include <sys/socket.h>

static void say_to(int fd, const char *text) {
    CHECK(fd >= 0);
    if (fd >= 0) CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

/* Through a socket, by itself and as the second of two messages. */
static void by_message(bool several) {
    int s[2], fd = 1;
    char data[2] = "ab";
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof fd)];
    } c = {.head = {CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS}};
    memcpy(CMSG_DATA(&c.head), &fd, sizeof fd);
    struct iovec v[2] = {{data, 1}, {data + 1, 1}};
    struct mmsghdr m[2] = {
        {.msg_hdr = {.msg_iov = v, .msg_iovlen = 1}},
        {.msg_hdr = {.msg_iov = v + 1, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c}}};
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, s) == 0);
    if (several) CHECK(sendmsg(s[0], &m[0].msg_hdr, 0) == 1);
    CHECK(sendmsg(s[0], &m[1].msg_hdr, 0) == 1);
    memset(&c, 0, sizeof c);
    if (several)
        CHECK(recvmmsg(s[1], m, 2, 0, NULL) == 2);
    else
        CHECK(recvmsg(s[1], &m[1].msg_hdr, 0) == 1);
    memcpy(&fd, CMSG_DATA(&c.head), sizeof fd);
    CHECK(fd > 2);
    say_to(fd, several ? "recvmmsg\n" : "recvmsg\n");
    close(fd), close(s[0]), close(s[1]);
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
    by_message(false);
    by_message(true);

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
