/* The kernel writes into pages with executed code: sockets. No datagram is lost. */
#include "kw_page.h"
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

static int listener, port_no;

static void send_fd(int to, int fd) {
    char byte = 'f', control[CMSG_SPACE(4)] = {0};
    struct iovec v = {&byte, 1};
    struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&h);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(4);
    memcpy(CMSG_DATA(c), &fd, 4);
    CHECK(sendmsg(to, &h, 0) == 1);
}

int main(void) {
    int s[2], u[2];
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, s) == 0);
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof any;
    for (int i = 0; i < 2; i++) CHECK((u[i] = socket(AF_INET, SOCK_DGRAM, 0)) >= 0 && bind(u[i], (void *)&any, n) == 0);
    struct sockaddr_in a1;
    CHECK(getsockname(u[1], (void *)&a1, &n) == 0);

    KW("recv",
       CHECK(send(s[1], "datagram", 8, 0) == 8 && recv(s[0], out, 100, 0) == 8 && !memcmp(out, "datagram", 8)););
    KW("recvfrom with address", struct sockaddr_in *from = (void *)(out + 512); socklen_t *len = (void *)(out + 1024);
       *len = sizeof *from; CHECK(kw_run(k) == k.value); CHECK(sendto(u[0], "udp", 3, 0, (void *)&a1, sizeof a1) == 3);
       CHECK(recvfrom(u[1], out, 100, 0, (void *)from, len) == 3 && *len == 16 && from->sin_family == AF_INET &&
             from->sin_port););
    KW("recvmsg", struct iovec v[2] = {{out, 3}, {out + 64, 60}}; struct msghdr *h = (void *)(out + 1024);
       *h = (struct msghdr){.msg_iov = v, .msg_iovlen = 2, .msg_name = out + 512, .msg_namelen = 64};
       CHECK(kw_run(k) == k.value); CHECK(sendto(u[0], "message", 7, 0, (void *)&a1, sizeof a1) == 7);
       CHECK(recvmsg(u[1], h, 0) == 7 && !memcmp(out, "mes", 3) && !memcmp(out + 64, "sage", 4) &&
             h->msg_namelen == 16););
    KW("recvmsg with a descriptor", struct iovec v = {out, 10};
       struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = out + 256, .msg_controllen = 128};
       send_fd(s[1], 0); CHECK(recvmsg(s[0], &h, 0) == 1 && out[0] == 'f' && h.msg_controllen >= CMSG_LEN(4)); int got;
       memcpy(&got, CMSG_DATA((struct cmsghdr *)(out + 256)), 4); CHECK(got > 2 && close(got) == 0););
    KW("recvmmsg", struct iovec v[2] = {{out, 20}, {out + 100, 20}}; struct mmsghdr *m = (void *)(out + 1024);
       memset(m, 0, 2 * sizeof *m);
       for (int i = 0; i < 2; i++) m[i].msg_hdr.msg_iov = &v[i], m[i].msg_hdr.msg_iovlen = 1;
       CHECK(kw_run(k) == k.value); CHECK(send(s[1], "one", 3, 0) == 3 && send(s[1], "three", 5, 0) == 5);
       CHECK(recvmmsg(s[0], m, 2, 0, NULL) == 2 && m[0].msg_len == 3 && m[1].msg_len == 5 &&
             !memcmp(out + 100, "three", 5)););
    KW("sendmmsg", struct iovec v = {"sent", 4}; struct mmsghdr *m = (void *)out; memset(m, 0, sizeof *m);
       m->msg_hdr.msg_iov = &v; m->msg_hdr.msg_iovlen = 1; CHECK(kw_run(k) == k.value);
       CHECK(sendmmsg(s[1], m, 1, 0) == 1 && m->msg_len == 4); char b[8]; CHECK(recv(s[0], b, 8, 0) == 4););
    KW("getsockopt", socklen_t *len = (void *)(out + 64); *len = 4; CHECK(kw_run(k) == k.value);
       CHECK(getsockopt(s[0], SOL_SOCKET, SO_TYPE, out, len) == 0 && *(int *)out == SOCK_DGRAM && *len == 4););
    KW("getsockname", socklen_t *len = (void *)(out + 128); *len = 16; CHECK(kw_run(k) == k.value);
       CHECK(getsockname(u[1], (void *)out, len) == 0 && ((struct sockaddr_in *)out)->sin_port == a1.sin_port););
    KW("socketpair", CHECK(syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, out) == 0); int *q = (int *)out;
       CHECK(!close(q[0]) && !close(q[1])););
    listener = socket(AF_INET, SOCK_STREAM, 0);
    n = sizeof any;
    CHECK(bind(listener, (void *)&any, n) == 0 && listen(listener, 5) == 0 &&
          getsockname(listener, (void *)&a1, &n) == 0);
    int c = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(c, (void *)&a1, sizeof a1) == 0);
    int conn = -1;
    KW("accept4", socklen_t *len = (void *)(out + 128); *len = 16; CHECK(kw_run(k) == k.value);
       conn = accept4(listener, (void *)out, len, 0);
       CHECK(conn > 2 && *len == 16 && ((struct sockaddr_in *)out)->sin_family == AF_INET););
    KW("getpeername", socklen_t *len = (void *)(out + 128); *len = 16; CHECK(kw_run(k) == k.value);
       CHECK(getpeername(c, (void *)out, len) == 0 && ((struct sockaddr_in *)out)->sin_port == a1.sin_port););
    KW("stream read", CHECK(write(c, "stream", 6) == 6 && read(conn, out, 100) == 6 && !memcmp(out, "stream", 6)););
    KW("a wild address length", void *volatile nowhere = (void *)0x10;
       CHECK(getsockname(c, (void *)out, nowhere) == -1 && errno == EFAULT););
    KW("wild vectors", void *volatile nowhere = (void *)0x10; CHECK(recvmsg(c, nowhere, 0) == -1 && errno == EFAULT);
       CHECK(readv(c, nowhere, 3) == -1 && errno == EFAULT););
    return finish();
}
