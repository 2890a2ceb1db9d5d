// Messages are received into scattered buffers while another thread watches them.
#include "race.h"
#include <sys/socket.h>
#include <sys/uio.h>
static volatile int part[4][8];
static int fd[2];
static volatile int done, received;
static void *body(void *arg) {
    switch ((intptr_t)arg) {
    case 0:
        for (int i = 1; i <= 300; i++) {
            int out[32];
            for (int k = 0; k < 32; k++) out[k] = i;
            if (send(fd[1], out, sizeof out, 0) < 0) break;
            if (i % 7 == 0) work(10000);
        }
        send(fd[1], "", 1, 0);
        break;
    case 1:
        for (;;) {
            struct iovec v[4];
            for (int k = 0; k < 4; k++) v[k] = (struct iovec){(void *)part[3 - k], sizeof part[k]};
            struct msghdr m = {.msg_iov = v, .msg_iovlen = 4};
            if (recvmsg(fd[0], &m, 0) < 2) break;
            received++;
        }
        done = 1;
        break;
    default: {
        uint64_t h = 0;
        int n = 0, mixed = 0;
        for (; !done && n < 300000; n++) {
            int a = part[0][0], b = part[3][7];
            if (a != b) mixed++;
            h = mix(h, (uint64_t)(a * 1000 + b));
            if (n % 100 == 0) sched_yield();
        }
        printf("%d looks, %d mixed, %016lx\n", n, mixed, h);
    }
    }
    return NULL;
}
int main(void) {
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, fd)) return 1;
    race(3, body);
    printf("%d received\n", received);
    return 0;
}
