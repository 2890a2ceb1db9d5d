/* Sockets on loopback: TCP with threads, UDP, Unix with credentials and descriptors passed, options, errors. */
#include "guest.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

static int listener;
static void *serve(void *arg) {
    for (int i = 0; i < 20; i++) {
        int c = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        char buf[4096];
        ssize_t n;
        while ((n = recv(c, buf, sizeof buf, 0)) > 0) {
            for (ssize_t k = 0; k < n; k++) buf[k] ^= 0x20;
            for (ssize_t off = 0; off < n;) off += send(c, buf + off, n - off, MSG_NOSIGNAL);
        }
        close(c);
    }
    return arg;
}
static void tcp(void) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(listener, (void *)&a, sizeof a) == 0 && listen(listener, 10) == 0 &&
          getsockname(listener, (void *)&a, &len) == 0);
    pthread_t t;
    pthread_create(&t, NULL, serve, NULL);
    long total = 0;
    for (int i = 0; i < 20; i++) {
        int s = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(connect(s, (void *)&a, sizeof a) == 0);
        setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        char out[10000], in[10000];
        memset(out, 'a' + i, sizeof out);
        CHECK(send(s, out, sizeof out, 0) == sizeof out);
        shutdown(s, SHUT_WR);
        ssize_t got = 0, n;
        while ((n = recv(s, in + got, sizeof in - got, 0)) > 0) got += n;
        CHECK(got == sizeof in && in[9999] == ('A' + i));
        total += got, close(s);
    }
    pthread_join(t, NULL);
    printf("tcp %ld\n", total);
    close(listener);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(s, (void *)&a, sizeof a) == -1 && errno == ECONNREFUSED);
    close(s);
}
static void udp(void) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, from;
    socklen_t len = sizeof a, flen = sizeof from;
    int s = socket(AF_INET, SOCK_DGRAM, 0), c = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(bind(s, (void *)&a, sizeof a) == 0 && getsockname(s, (void *)&a, &len) == 0);
    char buf[10];
    CHECK(sendto(c, "a longer datagram", 17, 0, (void *)&a, sizeof a) == 17);
    CHECK(recvfrom(s, buf, 10, MSG_TRUNC, (void *)&from, &flen) == 17 && !memcmp(buf, "a longer d", 10));
    CHECK(flen == sizeof from && from.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
    struct timeval tv = {0, 20000};
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
    CHECK(recv(s, buf, 10, 0) == -1 && errno == EAGAIN);
    struct mmsghdr m[3];
    struct iovec v[3];
    char bufs[3][8];
    memset(m, 0, sizeof m);
    for (int i = 0; i < 3; i++) {
        CHECK(sendto(c, &(char){'0' + i}, 1, 0, (void *)&a, sizeof a) == 1);
        v[i] = (struct iovec){bufs[i], 8}, m[i].msg_hdr.msg_iov = &v[i], m[i].msg_hdr.msg_iovlen = 1;
    }
    int n = recvmmsg(s, m, 3, 0, NULL);
    printf("udp recvmmsg %d, %c%c%c\n", n, bufs[0][0], bufs[1][0], bufs[2][0]);
}
static void pass_fd(void) {
    int sp[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sp) == 0);
    setsockopt(sp[0], SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int));
    pid_t pid = fork();
    if (!pid) {
        int p[2];
        (void)!pipe(p);
        (void)!write(p[1], "through a passed descriptor", 27);
        char cb[CMSG_SPACE(sizeof(int))] = "";
        struct msghdr m = {
            .msg_iov = &(struct iovec){"m", 1}, .msg_iovlen = 1, .msg_control = cb, .msg_controllen = sizeof cb};
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &p[0], sizeof(int));
        _exit(sendmsg(sp[1], &m, 0) == 1 ? 2 : 3);
    }
    char byte, cb[256], text[64] = "";
    struct msghdr m = {
        .msg_iov = &(struct iovec){&byte, 1}, .msg_iovlen = 1, .msg_control = cb, .msg_controllen = sizeof cb};
    CHECK(recvmsg(sp[0], &m, 0) == 1);
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_type == SCM_CREDENTIALS) CHECK(((struct ucred *)CMSG_DATA(c))->pid == pid);
        if (c->cmsg_type != SCM_RIGHTS) continue;
        int fd;
        memcpy(&fd, CMSG_DATA(c), sizeof fd);
        CHECK(read(fd, text, 63) == 27);
        close(fd);
    }
    printf("%s, %s\n", text, wait_text(pid));
}
static void unix_named(void) {
    struct sockaddr_un u = {.sun_family = AF_UNIX, .sun_path = "sock"};
    int l = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    unlink("sock");
    CHECK(bind(l, (void *)&u, sizeof u) == 0 && listen(l, 1) == 0);
    pid_t pid = fork();
    if (!pid) {
        int c = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        if (connect(c, (void *)&u, sizeof u)) _exit(1);
        for (int i = 0; i < 100; i++) (void)!send(c, &i, 1 + i % 4, 0);
        _exit(0);
    }
    int c = accept(l, NULL, NULL), n, total = 0;
    char buf[16];
    struct ucred cr;
    socklen_t len = sizeof cr;
    CHECK(getsockopt(c, SOL_SOCKET, SO_PEERCRED, &cr, &len) == 0 && cr.pid == pid);
    while ((n = recv(c, buf, sizeof buf, 0)) > 0) total += n;
    printf("packets %d, %s\n", total, wait_text(pid));
    unlink("sock");
}

int main(void) {
    tcp(), udp(), pass_fd(), unix_named();
    return finish();
}
