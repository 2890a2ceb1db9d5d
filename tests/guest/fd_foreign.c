/* No descriptor exists that the program did not open: asked of every number, in every way that could tell. */
#include "guest.h"
#include <dirent.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/uio.h>

static int top;

static void count(const char *name, int (*ask)(int)) {
    int n = 0;
    for (int fd = 3; fd < top; fd++) n += ask(fd) != 0;
    printf("%s: %d\n", name, n);
}
static int by_getfd(int fd) { return fcntl(fd, F_GETFD) != -1 || errno != EBADF; }
static int by_getfl(int fd) { return fcntl(fd, F_GETFL) != -1 || errno != EBADF; }
static int by_dup(int fd) { return dup(fd) != -1 || errno != EBADF; }
static int by_dup_from(int fd) { return dup2(fd, 2000) != -1 || errno != EBADF; }
static int by_fstat(int fd) {
    struct stat st;
    return fstat(fd, &st) != -1 || errno != EBADF;
}
static int by_statx(int fd) {
    struct statx sx;
    return statx(fd, "", AT_EMPTY_PATH, STATX_ALL, &sx) != -1 || errno != EBADF;
}
static int by_fstatfs(int fd) {
    struct statfs st;
    return fstatfs(fd, &st) != -1 || errno != EBADF;
}
static int by_read(int fd) {
    char c;
    return read(fd, &c, 1) != -1 || errno != EBADF;
}
static int by_poll(int fd) {
    struct pollfd p = {fd, POLLIN, 0};
    return poll(&p, 1, 0) != 1 || p.revents != POLLNVAL;
}
static int by_select(int fd) {
    if (fd >= FD_SETSIZE) return 0;
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    return select(fd + 1, &set, NULL, NULL, &(struct timeval){0, 0}) != -1 || errno != EBADF;
}
static int by_openat(int fd) { return openat(fd, "x", O_RDONLY) != -1 || errno != EBADF; }
static int by_fchdir(int fd) { return fchdir(fd) != -1 || errno != EBADF; }
static int by_linkat(int fd) {
    return linkat(fd, "", AT_FDCWD, "linked", AT_EMPTY_PATH) != -1 || (errno != EBADF && errno != ENOENT);
}
static int by_mmap(int fd) { return mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED || errno != EBADF; }
static int by_exec(int fd) {
    char *none[] = {NULL};
    return syscall(SYS_execveat, fd, "", none, none, AT_EMPTY_PATH) != -1 || errno != EBADF;
}
static int by_close(int fd) { return close(fd) != -1 || errno != EBADF; }
static int by_message(int fd) {
    int s[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, s)) return 1;
    int high[2] = {fcntl(s[0], F_DUPFD, top), fcntl(s[1], F_DUPFD, top)};
    close(s[0]), close(s[1]);
    union {
        char room[CMSG_SPACE(sizeof(int))];
        struct cmsghdr head;
    } c = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    memcpy(CMSG_DATA(&c.head), &fd, sizeof fd);
    struct iovec v = {"x", 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c.room};
    int sent = sendmsg(high[0], &m, 0) != -1 || errno != EBADF;
    close(high[0]), close(high[1]);
    return sent;
}
static int by_link(int fd) {
    char path[64], to[4096];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    bool there = readlink(path, to, sizeof to) != -1 || access(path, F_OK) == 0;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    there |= access(path, F_OK) == 0;
    snprintf(path, sizeof path, "/dev/fd/%d", fd);
    return there | (open(path, O_PATH) != -1 || errno != ENOENT);
}
static void list(const char *path) {
    DIR *d = opendir(path);
    printf("%s:", path);
    int own = dirfd(d);
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.' && atoi(e->d_name) != own) printf(" %s", e->d_name);
    puts("");
    closedir(d);
}

int main(void) {
    closefrom(3);
    struct rlimit lim;
    getrlimit(RLIMIT_NOFILE, &lim);
    top = lim.rlim_cur < 3000 ? (int)lim.rlim_cur : 3000;
    if (lim.rlim_cur == (rlim_t)top) { /* one above is wanted for sockets */
        top -= 8;
    }
    count("fcntl", by_getfd), count("flags", by_getfl), count("dup", by_dup), count("dup2", by_dup_from);
    count("fstat", by_fstat), count("statx", by_statx), count("fstatfs", by_fstatfs), count("read", by_read);
    count("poll", by_poll), count("select", by_select), count("openat", by_openat), count("fchdir", by_fchdir);
    count("linkat", by_linkat), count("mmap", by_mmap), count("execveat", by_exec), count("message", by_message);
    count("links", by_link), count("close", by_close);
    char path[64];
    list("/proc/self/fd"), list("/proc/thread-self/fdinfo"), list("/dev/fd");
    snprintf(path, sizeof path, "/proc/%d/fd", getpid());
    DIR *d = opendir(path);
    int entries = 0;
    while (readdir(d)) entries++;
    closedir(d);
    printf("%d entries with . and .. and itself\n", entries);

    /* every number can be had, one after the other, and the shell still starts */
    int null = open("/dev/null", O_RDWR), got = 0;
    for (int fd = 4; fd < top; fd++) got += dup2(null, fd) == fd;
    printf("all taken: %d\n", got == top - 4);
    pid_t pid = fork();
    if (!pid) execl("/bin/sh", "sh", "-c", "echo the shell runs", NULL), _exit(1);
    puts(wait_text(pid));
    closefrom(4);
    got = 0;
    for (int fd; (fd = dup(null)) >= 0 && fd < 1500; got++)
        if (fd != got + 4) {
            printf("FAIL: %d in place of %d\n", fd, got + 4);
            break;
        }
    closefrom(3);
    return finish();
}
