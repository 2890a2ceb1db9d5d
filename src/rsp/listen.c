/* Where debuggers connect. */
#include "rsp/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LOOK_MS 100

static int listen_at(int fd, const void *addr, socklen_t len) {
    if (fd < 0) return -1;
    if (bind(fd, addr, len) == 0 && listen(fd, 4) == 0) return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

int listen_path(const char *path) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof a.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(a.sun_path, path);
    return listen_at(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), &a, sizeof a);
}

int listen_port(unsigned *port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)*port)};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    fd = listen_at(fd, &a, sizeof a);
    if (fd >= 0 && getsockname(fd, (struct sockaddr *)&a, &len) == 0) *port = ntohs(a.sin_port);
    return fd;
}

/* The user behind the other end of a loopback connection, as the kernel's table says. -1: it does not. */
static long user_in(const char *table, unsigned theirs, unsigned ours) {
    char line[512];
    long user = -1;
    FILE *f = fopen(table, "re");
    while (f && user < 0 && fgets(line, sizeof line, f)) {
        unsigned from, to;
        long uid;
        if (sscanf(line, " %*d: %*[0-9A-F]:%x %*[0-9A-F]:%x %*x %*s %*s %*s %ld", &from, &to, &uid) == 3 &&
            from == theirs && to == ours)
            user = uid;
    }
    if (f) fclose(f);
    return user;
}

/* A port of the loopback interface is open to all users of the machine, a recording is not. */
static bool is_ours(int fd) {
    struct sockaddr_storage here, there;
    socklen_t len = sizeof here;
    if (getsockname(fd, (struct sockaddr *)&here, &len) < 0) return false;
    if (here.ss_family != AF_INET) return true;
    len = sizeof there;
    if (getpeername(fd, (struct sockaddr *)&there, &len) < 0) return false;
    unsigned ours = ntohs(((struct sockaddr_in *)&here)->sin_port);
    unsigned theirs = ntohs(((struct sockaddr_in *)&there)->sin_port);
    long user = user_in("/proc/net/tcp", theirs, ours);
    if (user < 0) user = user_in("/proc/net/tcp6", theirs, ours);
    return user <= 0 || user == (long)geteuid();
}

int listen_accept(int fd, bool (*is_over)(void *arg), void *arg) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (!is_over(arg)) {
        if (poll(&p, 1, LOOK_MS) <= 0) continue;
        int connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC), on = 1;
        if (connection < 0) {
            if (errno == EINTR || errno == ECONNABORTED) continue;
            return -1;
        }
        if (is_ours(connection)) {
            setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            return connection;
        }
        close(connection);
    }
    return -1;
}
