/* Every kind of call that waits and writes to memory, while another thread runs: what it returns and writes is what it would
 * have without the other thread. The one that waits is always the main thread; the other one waits a moment, does what ends
 * the wait, and keeps the processor busy. libs: -lrt */
#include "guest.h"
#include <mqueue.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

static int fds[2], file = -1, listener = -1, queue = -1;
static mqd_t mq = (mqd_t)-1;
static struct sockaddr_un here = {.sun_family = AF_UNIX};
static pthread_t main_thread;

/* ---- the other thread ---- */

static void (*volatile action)(void);
static volatile int asked, quit;
static volatile long spins;

static void *other(void *arg) {
    for (int done = 0; !quit;) {
        if (asked == done) {
            spins++;
            if (spins % 64 == 0) sched_yield();
            continue;
        }
        usleep(1500);
        action();
        done++;
    }
    return NULL;
}

static void then(void (*what)(void)) {
    action = what;
    asked++;
}

static void put_text(void) { CHECK(write(fds[1], "hello, world", 12) == 12); }
static void send_text(void) { CHECK(send(fds[1], "datagram", 8, 0) == 8); }
static volatile int all_sent;
static void send_three(void) {
    for (size_t i = 1; i <= 3; i++) CHECK(send(fds[1], "abcdef", i, 0) == (ssize_t)i);
    all_sent = 1;
}
static void send_descriptor(void) {
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } c = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    memcpy(CMSG_DATA(&c.head), &file, sizeof file);
    struct iovec v = {"with a descriptor", 17};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c};
    CHECK(sendmsg(fds[1], &m, 0) == 17);
}
static void join_in(void) {
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un me = here;
    me.sun_path[1] = 'c';
    CHECK(bind(fd, (struct sockaddr *)&me, sizeof(sa_family_t) + 10) == 0);
    CHECK(connect(fd, (struct sockaddr *)&here, sizeof(sa_family_t) + 12) == 0);
    close(fd);
}
static void queue_message(void) {
    struct {
        long type;
        char text[8];
    } m = {7, "queued"};
    CHECK(msgsnd(queue, &m, 7, 0) == 0);
}
static void queue_posix(void) { CHECK(mq_send(mq, "posix", 6, 3) == 0); }
static void unlock_file(void) { CHECK(fcntl(file, F_OFD_SETLK, &(struct flock){.l_type = F_UNLCK}) == 0); }
static void signal_main(void) { pthread_kill(main_thread, SIGUSR1); }

/* ---- files, pipes ---- */

static void fill(void *p, size_t n) { memset(p, '.', n); }

static void test_read(void) {
    char buf[32];
    CHECK(pipe(fds) == 0);
    fill(buf, sizeof buf);
    then(put_text);
    long n = read(fds[0], buf, sizeof buf);
    printf("read %ld %.16s\n", n, buf);

    char a[6], b[10];
    fill(a, sizeof a), fill(b, sizeof b);
    struct iovec v[2] = {{a, 5}, {b, 9}};
    then(put_text);
    n = readv(fds[0], v, 2);
    printf("readv %ld %.6s|%.10s\n", n, a, b);
    fill(a, sizeof a), fill(b, sizeof b);
    CHECK(pwrite(file, "0123456789", 10, 0) == 10);
    n = pread(file, buf, 4, 3);
    printf("pread %ld %.4s, ", n, buf);
    n = preadv(file, v, 2, 1);
    printf("preadv %ld %.6s|%.10s, ", n, a, b);
    n = preadv2(file, v, 2, 2, 0);
    printf("preadv2 %ld %.6s|%.10s\n", n, a, b);

    size_t size = 3 << 20; /* more than any buffer that is kept for such calls */
    char *big = malloc(size);
    fill(big, size);
    int zero = open("/dev/zero", O_RDONLY);
    n = read(zero, big, size - 10);
    printf("large read %ld %d%d%c\n", n, big[0], big[n - 1], big[n]);
    close(zero);
    free(big);

    int left = -1;
    CHECK(write(fds[1], "four", 4) == 4 && ioctl(fds[0], FIONREAD, &left) == 0);
    printf("ioctl %d\n", left);
    errno = 0;
    char *volatile nowhere = (char *)16;
    n = read(fds[0], nowhere, 4); /* nothing may be consumed */
    printf("bad pointer %ld %d, ", n, errno);
    n = read(fds[0], buf, sizeof buf);
    printf("then %ld\n", n);

    off_t at = 2;
    n = sendfile(fds[1], file, &at, 3);
    printf("sendfile %ld, offset %ld; ", n, (long)at);
    n = splice(file, &at, fds[1], NULL, 4, 0);
    printf("splice %ld, offset %ld; ", n, (long)at);
    off_t to = 20;
    n = copy_file_range(file, &at, file, &to, 1, 0);
    printf("copy_file_range %ld, offsets %ld %ld; ", n, (long)at, (long)to);
    fill(buf, sizeof buf);
    n = read(fds[0], buf, sizeof buf);
    printf("read %ld %.8s\n", n, buf);
    close(fds[0]), close(fds[1]);
}

/* ---- sockets ---- */

static void test_sockets(void) {
    char buf[32], control[64];
    struct sockaddr_un from;
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) == 0);
    struct sockaddr_un sender = here;
    sender.sun_path[1] = 's';
    CHECK(bind(fds[1], (struct sockaddr *)&sender, sizeof(sa_family_t) + 10) == 0);
    fill(buf, sizeof buf);
    memset(&from, 0, sizeof from);
    socklen_t len = sizeof from;
    then(send_text);
    long n = recvfrom(fds[0], buf, sizeof buf, 0, (struct sockaddr *)&from, &len);
    printf("recvfrom %ld %.9s, address %u %c\n", n, buf, len, from.sun_path[1]);

    char a[6], b[20];
    fill(a, sizeof a), fill(b, sizeof b);
    struct iovec v[2] = {{a, 5}, {b, 19}};
    struct msghdr m = {.msg_name = &from,
                       .msg_namelen = 4,
                       .msg_iov = v,
                       .msg_iovlen = 2,
                       .msg_control = control,
                       .msg_controllen = sizeof control,
                       .msg_flags = 99};
    then(send_descriptor);
    n = recvmsg(fds[0], &m, 0);
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    int got = -1;
    if (c) memcpy(&got, CMSG_DATA(c), sizeof got);
    printf("recvmsg %ld %.6s|%.14s, name %u, control %zu, flags %x, descriptor %d, vector %d\n", n, a, b, m.msg_namelen,
           m.msg_controllen, m.msg_flags, got > file && close(got) == 0, m.msg_iov == v && v[0].iov_base == a);

    char parts[4][8];
    struct iovec w[4];
    struct mmsghdr mm[4];
    memset(mm, 0, sizeof mm);
    fill(parts, sizeof parts);
    for (int i = 0; i < 4; i++) {
        w[i] = (struct iovec){parts[i], 8};
        mm[i].msg_hdr.msg_iov = &w[i];
        mm[i].msg_hdr.msg_iovlen = 1;
        mm[i].msg_len = 77;
    }
    then(send_three);
    n = recvmmsg(fds[0], mm, 3, 0, NULL); /* waits for all of them */
    printf("recvmmsg %ld\n", n);
    while (!all_sent) sched_yield();
    all_sent = 0;
    then(send_three);
    while (!all_sent) sched_yield();
    n = recvmmsg(fds[0], mm, 4, MSG_WAITFORONE, NULL);
    printf("recvmmsg %ld:", n);
    for (int i = 0; i < 4; i++) printf(" %u %.8s", mm[i].msg_len, parts[i]);
    n = sendmmsg(fds[0], mm, 2, 0);
    printf("\nsendmmsg %ld: %u %u %u\n", n, mm[0].msg_len, mm[1].msg_len, mm[2].msg_len);
    close(fds[0]), close(fds[1]);

    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(bind(listener, (struct sockaddr *)&here, sizeof(sa_family_t) + 12) == 0 && listen(listener, 5) == 0);
    for (int i = 0; i < 2; i++) {
        memset(&from, 0, sizeof from);
        len = 6; /* too short for it */
        then(join_in);
        int fd = i ? accept4(listener, (struct sockaddr *)&from, &len, SOCK_CLOEXEC)
                   : accept(listener, (struct sockaddr *)&from, &len);
        printf("accept %d, address %u %c %d\n", fd > 2, len, from.sun_path[1], from.sun_path[4]);
        close(fd);
    }
    close(listener);
}

/* ---- readiness ---- */

static void test_readiness(void) {
    char c[16];
    CHECK(pipe(fds) == 0);
    struct pollfd p[2] = {{fds[0], POLLIN, 99}, {-1, POLLIN, 99}};
    then(put_text);
    int n = poll(p, 2, 5000);
    printf("poll %d: %x %x\n", n, p[0].revents, p[1].revents);
    CHECK(read(fds[0], c, sizeof c) == 12);
    struct timespec ts = {5, 0};
    p[0].revents = p[1].revents = 99;
    then(put_text);
    n = (int)syscall(SYS_ppoll, p, 2, &ts, NULL, 8);
    printf("ppoll %d: %x %x, %ld\n", n, p[0].revents, p[1].revents, (long)ts.tv_sec);
    CHECK(read(fds[0], c, sizeof c) == 12);

    fd_set in, out;
    struct timeval tv = {5, 0};
    FD_ZERO(&in);
    FD_ZERO(&out);
    FD_SET(fds[0], &in), FD_SET(fds[0], &out);
    then(put_text);
    n = select(fds[0] + 1, &in, &out, NULL, &tv);
    printf("select %d: %d %d, %ld\n", n, !!FD_ISSET(fds[0], &in), !!FD_ISSET(fds[0], &out), (long)tv.tv_sec);
    ts = (struct timespec){5, 0};
    FD_SET(fds[0], &out);
    n = (int)syscall(SYS_pselect6, fds[0] + 1, &in, &out, NULL, &ts, NULL);
    printf("pselect6 %d: %d %d, %ld\n", n, !!FD_ISSET(fds[0], &in), !!FD_ISSET(fds[0], &out), (long)ts.tv_sec);
    CHECK(read(fds[0], c, sizeof c) == 12);

    int ep = epoll_create1(0);
    struct epoll_event e = {EPOLLIN, {.u64 = 12345}}, got[3];
    CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &e) == 0);
    for (int i = 0; i < 3; i++) {
        memset(got, 1, sizeof got);
        then(put_text);
        ts = (struct timespec){5, 0};
        n = i == 0   ? epoll_wait(ep, got, 3, 5000)
            : i == 1 ? epoll_pwait(ep, got, 3, 5000, NULL)
                     : (int)syscall(441 /* epoll_pwait2 */, ep, got, 3, &ts, NULL, 8);
        printf("epoll %d: %x %lu, %x\n", n, got[0].events, (unsigned long)got[0].data.u64, got[1].events);
        CHECK(read(fds[0], c, sizeof c) == 12);
    }
    p[0].revents = 99;
    n = poll(p, 1, 3);
    printf("nothing to poll %d: %x\n", n, p[0].revents);
    close(ep), close(fds[0]), close(fds[1]);
}

/* ---- children, sleep, signals ---- */

static void nothing(int sig, siginfo_t *info, void *context) {}

static pid_t child_that_ends(int code, int when[2]) { /* a moment after when[1] was closed */
    pid_t p = fork();
    if (p == 0) {
        char c;
        close(when[1]);
        CHECK(read(when[0], &c, 1) == 0);
        usleep(2000);
        _exit(code);
    }
    return p;
}

static void test_children(void) {
    int status = -1;
    siginfo_t info;
    struct rusage ru;
    memset(&ru, 0xff, sizeof ru);
    int end[2];
    CHECK(pipe(end) == 0);
    pid_t p = child_that_ends(3, end);
    close(end[0]), close(end[1]);
    CHECK(wait4(p, &status, 0, &ru) == p);
    printf("wait4 %x, usage %d\n", status, ru.ru_minflt > 0);
    status = 55;
    CHECK(pipe(end) == 0);
    p = child_that_ends(4, end);
    int n = waitpid(p, &status, WNOHANG);
    close(end[0]), close(end[1]);
    printf("not yet %d %d\n", n, status);
    memset(&info, 0xff, sizeof info);
    n = waitid(P_PID, (id_t)p, &info, WEXITED);
    printf("waitid %d: %d %d %d\n", n, info.si_signo, info.si_pid == p, info.si_status);
    n = waitid(P_PID, (id_t)p, &info, WEXITED);
    printf("waitid %d: %d\n", n, info.si_signo);
}

static void test_sleep(void) {
    struct timespec rest = {77, 77}, want = {0, 1000000};
    int n = nanosleep(&want, &rest);
    printf("nanosleep %d %ld, ", n, (long)rest.tv_sec);
    handle(SIGUSR1, nothing, 0);
    want.tv_sec = 5;
    then(signal_main);
    n = nanosleep(&want, &rest);
    printf("interrupted %d %ld, ", n, (long)rest.tv_sec);
    then(signal_main);
    n = clock_nanosleep(CLOCK_MONOTONIC, 0, &want, &rest);
    printf("clock_nanosleep %d %ld\n", n, (long)rest.tv_sec);
    struct pollfd p = {fds[0], POLLIN, 99};
    CHECK(pipe(fds) == 0);
    p.fd = fds[0];
    then(signal_main);
    n = poll(&p, 1, 5000);
    printf("interrupted poll %d %d %x\n", n, errno, p.revents);
    close(fds[0]), close(fds[1]);

    sigset_t set;
    siginfo_t info;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    memset(&info, 0, sizeof info);
    then(signal_main);
    n = sigwaitinfo(&set, &info);
    printf("sigwaitinfo %d %d %d\n", n, info.si_signo, info.si_code);
    want = (struct timespec){0, 1000000};
    info.si_signo = 99;
    n = sigtimedwait(&set, &info, &want);
    printf("sigtimedwait %d %d %d\n", n, errno == EAGAIN, info.si_signo);
}

/* ---- queues, locks, random numbers ---- */

static void test_rest(void) {
    struct {
        long type;
        char text[16];
    } m = {0, "..............."};
    queue = msgget(IPC_PRIVATE, 0600);
    then(queue_message);
    long n = msgrcv(queue, &m, 16, 0, 0);
    printf("msgrcv %ld %ld %s\n", n, m.type, m.text);
    msgctl(queue, IPC_RMID, NULL);

    char name[32], buf[64];
    snprintf(name, sizeof name, "/reprise-%d", getpid());
    mq = mq_open(name, O_CREAT | O_RDWR, 0600, &(struct mq_attr){.mq_maxmsg = 2, .mq_msgsize = 32});
    if (mq != (mqd_t)-1) { /* not everywhere */
        unsigned priority = 99;
        then(queue_posix);
        n = mq_receive(mq, buf, sizeof buf, &priority);
        CHECK(n == 6 && strcmp(buf, "posix") == 0 && priority == 3);
        mq_close(mq);
        mq_unlink(name);
    }

    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    int again = open(path, O_RDWR);
    struct flock l = {.l_type = F_WRLCK};
    CHECK(fcntl(file, F_OFD_SETLK, &l) == 0);
    CHECK(fcntl(again, F_OFD_GETLK, &l) == 0);
    printf("locked %d %d\n", l.l_type == F_WRLCK, l.l_pid);
    then(unlock_file);
    l = (struct flock){.l_type = F_WRLCK};
    n = fcntl(again, F_OFD_SETLKW, &l);
    printf("lock %ld\n", n);
    close(again);

    unsigned char r[40];
    memset(r, 0, sizeof r);
    n = getrandom(r, 32, 0);
    int some = 0, behind = 0;
    for (int i = 0; i < 32; i++) some |= r[i];
    for (int i = 32; i < 40; i++) behind |= r[i];
    printf("getrandom %ld %d %d\n", n, some != 0, behind);
}

int main(void) {
    pthread_t t;
    main_thread = pthread_self();
    FILE *f = tmpfile();
    file = fileno(f);
    snprintf(here.sun_path + 1, 60, "w%010d", getpid());
    pthread_create(&t, NULL, other, NULL);
    test_read();
    test_sockets();
    test_readiness();
    test_children();
    test_sleep();
    test_rest();
    quit = 1;
    pthread_join(t, NULL);
    return finish();
}
