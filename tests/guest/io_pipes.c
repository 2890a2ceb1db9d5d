/* Pipes, select, poll, epoll, eventfd, timerfd: readiness, edge and level triggering, EPIPE and SIGPIPE, splice, tee. */
#include "guest.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/timerfd.h>

int main(void) {
    int p[2], q[2];
    CHECK(pipe2(p, O_NONBLOCK) == 0 && pipe(q) == 0);
    char buf[70000];
    CHECK(read(p[0], buf, 1) == -1 && errno == EAGAIN);
    memset(buf, 'a', sizeof buf);
    printf("pipe holds %zd\n", write(p[1], buf, sizeof buf));
    CHECK(write(p[1], buf, 1) == -1 && errno == EAGAIN);
    fd_set r;
    FD_ZERO(&r);
    FD_SET(p[0], &r);
    FD_SET(q[0], &r);
    struct timeval tv = {0, 0};
    CHECK(select(q[0] + 1, &r, NULL, NULL, &tv) == 1 && FD_ISSET(p[0], &r) && !FD_ISSET(q[0], &r));
    CHECK(splice(p[0], NULL, q[1], NULL, 5, 0) == 5 && read(q[0], buf, 100) == 5);

    int ep = epoll_create1(EPOLL_CLOEXEC), ev = eventfd(3, EFD_NONBLOCK),
        tf = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = 1}, got[4];
    CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, ev, &e) == 0);
    e.events = EPOLLIN | EPOLLET, e.data.u32 = 2;
    CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, p[0], &e) == 0);
    e.events = EPOLLIN | EPOLLONESHOT, e.data.u32 = 3;
    CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, tf, &e) == 0);
    for (int i = 0; i < 3; i++) printf("epoll %d: %d ready\n", i, epoll_wait(ep, got, 4, 0));
    uint64_t v;
    CHECK(read(ev, &v, 8) == 8 && v == 3 && read(ev, &v, 8) == -1 && errno == EAGAIN);
    struct itimerspec its = {{0, 5000000}, {0, 5000000}};
    timerfd_settime(tf, 0, &its, NULL);
    CHECK(epoll_wait(ep, got, 4, 10000) == 1 && got[0].data.u32 == 3);
    sleep_ms(30);
    CHECK(read(tf, &v, 8) == 8 && v >= 4);
    long t = now_ms();
    CHECK(epoll_wait(ep, got, 4, 50) == 0 && now_ms() - t >= 49);
    t = now_ms();
    CHECK(poll(NULL, 0, 30) == 0 && now_ms() - t >= 29);
    CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, ev, &e) == -1 && errno == EEXIST);

    pid_t pid = fork();
    if (!pid) {
        close(q[0]);
        (void)!write(q[1], "x", 1);
        _exit(0);
    }
    wait(NULL);
    pid = fork();
    if (!pid) {
        close(q[0]), signal(SIGPIPE, SIG_DFL);
        int w[2];
        (void)!pipe(w);
        close(w[0]);
        (void)!write(w[1], "x", 1);
        _exit(0);
    }
    printf("broken pipe: %s\n", wait_text(pid));
    signal(SIGPIPE, SIG_IGN);
    int w[2];
    CHECK(pipe(w) == 0 && close(w[0]) == 0 && write(w[1], "x", 1) == -1 && errno == EPIPE);
    CHECK(fcntl(p[0], F_GETPIPE_SZ) == 65536);
    /* a chain of processes */
    int first[2], in;
    CHECK(pipe(first) == 0);
    in = first[0];
    for (int i = 0; i < 10; i++) {
        int next[2];
        CHECK(pipe(next) == 0);
        if (!fork()) {
            close(first[1]), close(next[0]);
            int x;
            while (read(in, &x, 4) == 4) x += i, (void)!write(next[1], &x, 4);
            _exit(0);
        }
        close(in), close(next[1]), in = next[0];
    }
    long sum = 0;
    for (int i = 0; i < 500; i++) CHECK(write(first[1], &i, 4) == 4);
    close(first[1]);
    for (int x; read(in, &x, 4) == 4;) sum += x;
    while (wait(NULL) > 0) {}
    printf("chain %ld\n", sum);
    return finish();
}
