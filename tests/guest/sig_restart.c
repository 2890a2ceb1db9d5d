/* Which calls restart under SA_RESTART and which return EINTR whatever the flag says. */
#include "guest.h"
#include <linux/futex.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/socket.h>

static int fds[2], socks[2], queue, ep;
static volatile int handled;
static void on(int sig, siginfo_t *si, void *uc) { (void)sig, (void)si, (void)uc, handled++; }

/* Each call blocks until `release` lets it go, or for some seconds. */
static int do_read(void) {
    char c;
    return read(fds[0], &c, 1);
}
static int do_recv(void) {
    char c;
    return recv(socks[0], &c, 1, 0);
}
static int do_nanosleep(void) {
    struct timespec t = {5, 0}, left = {9, 9};
    int r = nanosleep(&t, &left);
    if (r) CHECK(left.tv_sec < 5);
    return r;
}
static int do_clock_nanosleep(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += 5;
    int r = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
    return r ? (errno = r, -1) : 0;
}
static int do_poll(void) {
    struct pollfd p = {fds[0], POLLIN, 0};
    return poll(&p, 1, 5000);
}
static int do_select(void) {
    fd_set s;
    FD_ZERO(&s);
    FD_SET(fds[0], &s);
    struct timeval t = {5, 0};
    return select(fds[0] + 1, &s, NULL, NULL, &t);
}
static int do_epoll(void) {
    struct epoll_event e;
    return epoll_wait(ep, &e, 1, 5000);
}
static int do_pause(void) { return pause(); }
static int do_futex(void) {
    static int word;
    struct timespec t = {5, 0};
    return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &t, 0, 0);
}
static int do_msgrcv(void) {
    struct {
        long t;
        char c[8];
    } m;
    return msgrcv(queue, &m, 8, 0, 0);
}
static int do_sigtimedwait(void) {
    sigset_t s;
    sigemptyset(&s), sigaddset(&s, SIGUSR2);
    struct timespec t = {5, 0};
    return sigtimedwait(&s, NULL, &t);
}
static int do_sem(void) {
    static sem_t s;
    sem_init(&s, 0, 0);
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += 5;
    return sem_timedwait(&s, &t);
}
static pid_t kid;
static int do_wait(void) {
    int st;
    return waitpid(kid, &st, 0) == kid ? 1 : -1;
}

static const struct row {
    const char *name;
    int (*call)(void);
    int release;
} rows[] = {
    {"read pipe", do_read, 1},
    {"recv", do_recv, 2},
    {"nanosleep", do_nanosleep, 0},
    {"clock_nanosleep abs", do_clock_nanosleep, 0},
    {"poll", do_poll, 0},
    {"select", do_select, 0},
    {"epoll_wait", do_epoll, 0},
    {"pause", do_pause, 0},
    {"futex timed", do_futex, 0},
    {"msgrcv", do_msgrcv, 0},
    {"sigtimedwait", do_sigtimedwait, 0},
    {"sem_timedwait", do_sem, 0},
    {"waitpid", do_wait, 3},
};

/* A child signals us once we sleep, and after that lets the call finish. */
static void one(const struct row *r, int flags) {
    handle(SIGUSR1, on, flags);
    handled = 0;
    pid_t me = getpid();
    if (r->release == 3) { /* the waited-for child ends when told to */
        int gate[2];
        CHECK(pipe(gate) == 0);
        if (!(kid = fork())) {
            char c;
            close(gate[1]);
            _exit(read(gate[0], &c, 1) < 0);
        }
        close(gate[0]);
        pid_t p = fork();
        if (!p) {
            wait_asleep(me, me), kill(me, SIGUSR1), sleep_ms(60);
            _exit(0);
        }
        close(gate[1]);
        int v = do_wait(), e = errno;
        printf("%-20s %-10s handled %d: %s\n", r->name, flags ? "SA_RESTART" : "", handled,
               v < 0 ? strerror(e) : "done");
        while (wait(NULL) > 0 || errno == EINTR) {}
        return;
    }
    pid_t p = fork();
    if (!p) {
        wait_asleep(me, me), kill(me, SIGUSR1), sleep_ms(60);
        if (r->release == 1) CHECK(write(fds[1], "x", 1) == 1);
        if (r->release == 2) CHECK(write(socks[1], "x", 1) == 1);
        _exit(0);
    }
    int v = r->call(), e = errno;
    printf("%-20s %-10s handled %d: %s\n", r->name, flags ? "SA_RESTART" : "", handled, v < 0 ? strerror(e) : "done");
    CHECK(waitpid(p, NULL, 0) == p);
    char c;
    if (v < 0 && r->release == 1) CHECK(read(fds[0], &c, 1) == 1);
    if (v < 0 && r->release == 2) CHECK(read(socks[0], &c, 1) == 1);
}

int main(void) {
    CHECK(pipe(fds) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, socks) == 0);
    queue = msgget(IPC_PRIVATE, 0600);
    ep = epoll_create1(0);
    struct epoll_event e = {.events = EPOLLIN};
    epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &e);
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) one(&rows[i], 0), one(&rows[i], SA_RESTART);
    msgctl(queue, IPC_RMID, NULL);

    /* An ignored signal interrupts nothing. */
    signal(SIGUSR1, SIG_IGN);
    pid_t me = getpid(), p = fork();
    if (!p) {
        wait_asleep(me, me), kill(me, SIGUSR1), kill(me, SIGCHLD), sleep_ms(50);
        _exit(write(fds[1], "x", 1) != 1);
    }
    struct pollfd pf = {fds[0], POLLIN, 0};
    CHECK(poll(&pf, 1, 20000) == 1);
    wait(NULL);
    return finish();
}
