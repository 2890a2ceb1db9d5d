// Scratch: calls are really issued with their outputs elsewhere; the program's memory changes at the end and not before.
// cflags: -include tests/unit/weak_special.h
// link: src/inproc/fmt.c src/sphere/sys/bpf.c src/sphere/sys/ioctl.c src/sphere/sys/ptrace_model.c src/sphere/sys/model.c src/sphere/sys/scratch.c
// clang-format off
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inproc/arena.h"
#include "inproc/layout.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/sys/model.h"
#include "sphere/sys/scratch.h"

/* ---- stand-ins ---- */

static bool is_mapped(gaddr addr) { return addr >= 0x1000 && addr < LAYOUT_GUEST_END - 0x1000; }

gaddr shared_lowest, shared_highest;
void shared_hold(gaddr start, size_t len) {}

long guest_copy(void *to, const void *from, size_t n) {
    if (!is_mapped((gaddr)from) || !is_mapped((gaddr)to)) return (long)n;
    memmove(to, from, n);
    return 0;
}

uint64_t code_watch_protected;
static size_t n_given; /* ranges that were written to the program */
void code_watch_before_kernel_write(gaddr start, size_t len) { n_given++; }
void code_watch_before_any_kernel_write(void) {}

static gaddr readonly_page; /* the one page of this process that is not writable */
bool aspace_find(gaddr addr, struct mapping *m) {
    if (!is_mapped(addr)) return false;
    bool ro = readonly_page && PAGE_DOWN(addr) == readonly_page;
    *m = (struct mapping){.prot = ro ? PROT_READ : PROT_READ | PROT_WRITE};
    m->start = ro ? readonly_page : 0x1000;
    m->end = ro ? readonly_page + PAGE_SIZE : readonly_page > addr ? readonly_page : LAYOUT_GUEST_END;
    return true;
}

static size_t arena_given, arena_taken;
void *arena_try_pages(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    arena_given += bytes;
    return p == MAP_FAILED ? NULL : p;
}
void arena_free_pages(void *p, size_t bytes) {
    arena_taken += bytes;
    munmap(p, bytes);
}

/* ---- a call, its outputs looked at before and after ---- */

static struct tblock *tb;
static struct scratch s;
static uint64_t a[6];
static bool redirected;

static long issue(uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5) {
    const uint64_t program[6] = {a0, a1, a2, a3, a4, a5};
    memcpy(a, program, sizeof a);
    redirected = scratch_begin(&s, tb, nr, a);
    if (!redirected) assert_memory_equal(a, program, sizeof a);
    return sys6((long)nr, (long)a[0], (long)a[1], (long)a[2], (long)a[3], (long)a[4], (long)a[5]);
}

static long finish(uint64_t nr, long ret) {
    assert_true(redirected);
    n_given = 0;
    return scratch_end(&s, tb, nr, a, ret);
}

#define CALL(name, ...) issue(__NR_##name, CALL_ARGS(__VA_ARGS__, 0, 0, 0, 0, 0, 0))
#define CALL_ARGS(a0, a1, a2, a3, a4, a5, ...) \
    (uint64_t)(a0), (uint64_t)(a1), (uint64_t)(a2), (uint64_t)(a3), (uint64_t)(a4), (uint64_t)(a5)
#define FINISH(name, ret) finish(__NR_##name, ret)

static int fds[2];
static void with_pipe(const char *text) {
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(write(fds[1], text, strlen(text)), strlen(text));
}
static void with_sockets(int type) { assert_int_equal(socketpair(AF_UNIX, type, 0, fds), 0); }
static void close_both(void) {
    close(fds[0]);
    close(fds[1]);
}

/* ---- tests ---- */

static void test_read(void **state) {
    char buf[64] = "................";
    with_pipe("hello");
    long n = CALL(read, fds[0], buf, 64);
    assert_int_equal(n, 5);
    assert_string_equal(buf, "................");
    assert_int_equal(FINISH(read, n), 5);
    assert_string_equal(buf, "hello...........");
    assert_int_equal(a[1], (uint64_t)buf);
    close_both();
}

static void test_failed_read(void **state) {
    char buf[4] = "abc";
    long n = CALL(read, -1, buf, 4);
    assert_int_equal(FINISH(read, n), -EBADF);
    assert_string_equal(buf, "abc");
    assert_int_equal(n_given, 0);
}

static void test_aborted(void **state) {
    struct pollfd p = {.fd = -1, .revents = 7};
    CALL(poll, &p, 1, 0);
    assert_int_equal(FINISH(poll, GATE_ABORTED), GATE_ABORTED);
    assert_int_equal(p.revents, 7);
    assert_int_equal(a[0], (uint64_t)&p);
}

static void test_vectors(void **state) {
    char x[3] = "..", y[8] = ".......";
    struct iovec v[3] = {{x, 2}, {0, 0}, {y, 7}}, same[3];
    memcpy(same, v, sizeof v);
    with_pipe("abcdef");
    long n = CALL(readv, fds[0], v, 3);
    assert_int_equal(n, 6);
    assert_string_equal(x, "..");
    FINISH(readv, n);
    assert_string_equal(x, "ab");
    assert_string_equal(y, "cdef...");
    assert_memory_equal(v, same, sizeof v);
    close_both();
}

static void test_large_read(void **state) {
    size_t size = 40 << 20;
    char *buf = malloc(size);
    memset(buf, 1, size);
    int fd = open("/dev/zero", O_RDONLY);
    long n = CALL(read, fd, buf, size);
    assert_int_equal(n, size);
    assert_int_equal(buf[size - 1], 1);
    assert_int_equal(a[1] % PAGE_SIZE, (uint64_t)buf % PAGE_SIZE); /* O_DIRECT */
    FINISH(read, n);
    assert_null(memchr(buf, 1, size));
    size_t before = arena_given;
    n = CALL(read, fd, buf, size / 2); /* the same place again */
    FINISH(read, n);
    assert_int_equal(arena_given, before);
    with_pipe("tiny");
    n = CALL(read, fds[0], buf, size - 1); /* larger than what there is */
    FINISH(read, n);
    assert_memory_equal(buf, "tiny\0", 5);
    close_both();
    close(fd);
    free(buf);
}

static void test_too_large(void **state) {
    with_pipe("x");
    CALL(read, fds[0], 0x10000, 3ull << 30);
    assert_false(redirected);
    close_both();
}

static void test_not_writable(void **state) {
    char *two = mmap(NULL, 2 * PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    readonly_page = (gaddr)two + PAGE_SIZE;
    mprotect(two + PAGE_SIZE, PAGE_SIZE, PROT_READ);
    with_pipe("hello");
    assert_int_equal(CALL(read, fds[0], two + PAGE_SIZE - 2, 5), -EFAULT);
    assert_false(redirected);
    assert_int_equal(CALL(read, fds[0], two + PAGE_SIZE - 5, 5), 5); /* nothing was consumed */
    assert_true(redirected);
    readonly_page = 0;
    munmap(two, 2 * PAGE_SIZE);
    close_both();
}

static void test_poll(void **state) {
    with_pipe("x");
    struct pollfd p[2] = {{fds[0], POLLIN, 0}, {-1, POLLIN, 9}};
    long n = CALL(poll, p, 2, 0);
    assert_int_equal(n, 1);
    assert_int_equal(p[0].revents, 0);
    p[1].fd = 12345; /* the program changes its mind meanwhile */
    FINISH(poll, n);
    assert_int_equal(p[0].revents, POLLIN);
    assert_int_equal(p[1].revents, 0);
    assert_int_equal(p[1].fd, 12345);
    struct timespec ts = {0, 1000000};
    n = CALL(ppoll, 0, 0, &ts, 0, 8); /* no descriptors: only the rest of the time */
    assert_int_equal(ts.tv_nsec, 1000000);
    FINISH(ppoll, n);
    assert_int_equal(ts.tv_nsec, 0);
    close_both();
}

static void test_select(void **state) {
    with_pipe("x");
    uint64_t in[16] = {1ull << fds[0]}, out[16] = {1ull << fds[1]};
    struct timeval tv = {5, 0};
    long n = CALL(select, 64, in, out, 0, &tv);
    assert_int_equal(n, 2);
    assert_int_equal(tv.tv_sec, 5);
    FINISH(select, n);
    assert_int_equal(in[0], 1ull << fds[0]);
    assert_int_equal(tv.tv_sec, 4);
    close_both();
}

static void test_epoll(void **state) {
    with_pipe("x");
    int ep = (int)SYS(epoll_create1, 0);
    struct epoll_event e = {EPOLLIN, {.u64 = 77}}, got[4] = {{9, {.u64 = 9}}, {9, {.u64 = 9}}};
    SYS(epoll_ctl, ep, 1, fds[0], &e);
    long n = CALL(epoll_wait, ep, got, 4, 0);
    assert_int_equal(n, 1);
    assert_int_equal(got[0].data.u64, 9);
    FINISH(epoll_wait, n);
    assert_int_equal(got[0].data.u64, 77);
    assert_int_equal(got[1].data.u64, 9);
    close(ep);
    close_both();
}

static void test_recvfrom(void **state) {
    int r = socket(AF_UNIX, SOCK_DGRAM, 0), w = socket(AF_UNIX, SOCK_DGRAM, 0);
    struct sockaddr_un at = {.sun_family = AF_UNIX}, from;
    snprintf(at.sun_path + 1, 60, "scratch-%d", getpid());
    socklen_t len = (socklen_t)(3 + strlen(at.sun_path + 1));
    assert_int_equal(bind(r, (void *)&at, len), 0);
    struct sockaddr_un me = at;
    me.sun_path[1] = 'S';
    assert_int_equal(bind(w, (void *)&me, len), 0);
    assert_int_equal(sendto(w, "abc", 3, 0, (void *)&at, len), 3);
    char buf[8] = ".......";
    memset(&from, 0, sizeof from);
    socklen_t room = 5;
    long n = CALL(recvfrom, r, buf, 8, 0, &from, &room);
    assert_int_equal(n, 3);
    assert_int_equal(room, 5);
    FINISH(recvfrom, n);
    assert_string_equal(buf, "abc....");
    assert_int_equal(room, len); /* longer than the room there was */
    assert_memory_equal(&from, &me, 5);
    assert_int_equal(((char *)&from)[5], 0);
    close(r);
    close(w);
}

static void test_recvmsg(void **state) {
    with_sockets(SOCK_DGRAM);
    struct {
        struct cmsghdr c;
        int fd;
    } out = {{CMSG_LEN(4), SOL_SOCKET, SCM_RIGHTS}, 0};
    struct iovec ov = {"message", 7};
    struct msghdr om = {.msg_iov = &ov, .msg_iovlen = 1, .msg_control = &out, .msg_controllen = CMSG_SPACE(4)};
    assert_int_equal(sendmsg(fds[1], &om, 0), 7);
    char x[4] = "...", y[16] = "...............", control[64] = {0};
    struct iovec v[2] = {{x, 3}, {y, 15}};
    struct msghdr m = {.msg_iov = v, .msg_iovlen = 2, .msg_control = control, .msg_controllen = 64, .msg_flags = 99};
    long n = CALL(recvmsg, fds[0], &m, 0);
    assert_int_equal(n, 7);
    assert_int_equal(m.msg_controllen, 64);
    FINISH(recvmsg, n);
    assert_string_equal(x, "mes");
    assert_string_equal(y, "sage...........");
    assert_int_equal(m.msg_flags, 0);
    assert_ptr_equal(m.msg_iov, v);
    assert_ptr_equal(m.msg_control, control);
    assert_int_equal(m.msg_controllen, CMSG_SPACE(4));
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    assert_int_equal(c->cmsg_type, SCM_RIGHTS);
    int fd;
    memcpy(&fd, CMSG_DATA(c), 4);
    assert_int_equal(close(fd), 0);
    close_both();
}

static void test_recvmmsg(void **state) {
    with_sockets(SOCK_DGRAM);
    for (int i = 0; i < 3; i++) assert_int_equal(send(fds[1], "12345", (size_t)i + 1, 0), i + 1);
    char buf[4][8];
    memset(buf, '.', sizeof buf);
    struct iovec v[4];
    struct mmsghdr m[4];
    memset(m, 0, sizeof m);
    for (int i = 0; i < 4; i++) {
        v[i] = (struct iovec){buf[i], 8};
        m[i].msg_hdr.msg_iov = &v[i];
        m[i].msg_hdr.msg_iovlen = 1;
        m[i].msg_len = 55;
    }
    long n = CALL(recvmmsg, fds[0], m, 4, MSG_DONTWAIT, 0);
    assert_int_equal(n, 3);
    assert_int_equal(m[0].msg_len, 55);
    FINISH(recvmmsg, n);
    for (int i = 0; i < 3; i++) assert_int_equal(m[i].msg_len, i + 1);
    assert_int_equal(m[3].msg_len, 55);
    assert_memory_equal(buf[2], "123.....", 8);
    assert_ptr_equal(m[2].msg_hdr.msg_iov, &v[2]);
    close_both();
}

static void test_sendmmsg(void **state) {
    with_sockets(SOCK_DGRAM);
    struct iovec v = {"abcd", 4};
    struct mmsghdr m[2] = {{{.msg_iov = &v, .msg_iovlen = 1}, 9}, {{.msg_iov = &v, .msg_iovlen = 1}, 9}};
    long n = CALL(sendmmsg, fds[1], m, 2, 0);
    assert_int_equal(n, 2);
    assert_int_equal(m[1].msg_len, 9);
    FINISH(sendmmsg, n);
    assert_int_equal(m[1].msg_len, 4);
    assert_ptr_equal(m[1].msg_hdr.msg_iov, &v);
    close_both();
}

static void test_children(void **state) {
    pid_t child = fork();
    if (child == 0) _exit(3);
    int status = 55;
    siginfo_t info = {.si_signo = 55};
    long n = CALL(waitid, P_PID, child, &info, WEXITED | WNOWAIT, 0);
    assert_int_equal(info.si_signo, 55);
    FINISH(waitid, n);
    assert_int_equal(info.si_signo, SIGCHLD);
    n = CALL(wait4, child, &status, 0, 0);
    assert_int_equal(n, child);
    assert_int_equal(status, 55);
    FINISH(wait4, n);
    assert_int_equal(status, 3 << 8);
    n = CALL(wait4, child, &status, 0, 0);
    assert_int_equal(FINISH(wait4, n), -ECHILD);
    assert_int_equal(n_given, 0);
}

static void test_sleep(void **state) {
    struct timespec want = {0, 1000}, rest = {55, 55};
    long n = CALL(nanosleep, &want, &rest);
    FINISH(nanosleep, n);
    assert_int_equal(rest.tv_sec, 55);
    n = CALL(clock_nanosleep, 1, 0, &want, &rest);
    finish(__NR_clock_nanosleep, -EINTR);
    assert_int_equal(n_given, 1);
    n = CALL(clock_nanosleep, 1, TIMER_ABSTIME, &want, &rest);
    assert_false(redirected);
}

static void test_requests(void **state) {
    with_pipe("hello");
    int n = 55;
    long ret = CALL(ioctl, fds[0], FIONREAD, &n);
    assert_int_equal(n, 55);
    FINISH(ioctl, ret);
    assert_int_equal(n, 5);
    CALL(ioctl, fds[0], FIONBIO, &n);
    assert_false(redirected);
    CALL(ioctl, fds[0], 0x12345678, &n);
    assert_false(redirected);
    FILE *f = tmpfile();
    struct flock l = {.l_type = F_WRLCK};
    ret = CALL(fcntl, fileno(f), F_GETLK, &l);
    assert_int_equal(l.l_type, F_WRLCK);
    FINISH(fcntl, ret);
    assert_int_equal(l.l_type, F_UNLCK);
    fclose(f);
    close_both();
}

static void test_queues(void **state) {
    int q = (int)SYS(msgget, IPC_PRIVATE, 0600 | IPC_CREAT);
    struct {
        long type;
        char text[16];
    } m = {5, "hello"}, got = {0, "..............."};
    assert_int_equal(SYS(msgsnd, q, &m, 5, 0), 0);
    long n = CALL(msgrcv, q, &got, 16, 0, 0);
    assert_int_equal(n, 5);
    assert_int_equal(got.type, 0);
    FINISH(msgrcv, n);
    assert_int_equal(got.type, 5);
    assert_string_equal(got.text, "hello..........");
    SYS(msgctl, q, IPC_RMID, 0);
}

static void test_offsets(void **state) {
    FILE *f = tmpfile();
    fputs("0123456789", f);
    fflush(f);
    assert_int_equal(pipe(fds), 0);
    int64_t at = 4;
    long n = CALL(splice, fileno(f), &at, fds[1], 0, 3, 0);
    assert_int_equal(n, 3);
    assert_int_equal(at, 4);
    FINISH(splice, n);
    assert_int_equal(at, 7);
    n = CALL(sendfile, fds[1], fileno(f), &at, 2);
    FINISH(sendfile, n);
    assert_int_equal(at, 9);
    close_both();
    fclose(f);
}

static void test_bound(void **state) {
    uint32_t word = 1;
    CALL(futex, &word, 0 /* FUTEX_WAIT */, 0, 0);
    assert_false(redirected);
    struct iovec v = {&word, 4};
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(CALL(vmsplice, fds[1], &v, 1, 0), 4);
    assert_false(redirected);
    CALL(getpid, 0);
    assert_false(redirected);
    close_both();
}

static void test_hostile_arguments(void **state) {
    static const uint64_t odd[] = {
        0, 1, 8, 0xfff, 0x7ffffffffff8, 0xffff800000000000, UINT64_MAX, UINT64_MAX - 7, 1ull << 63};
    uint64_t seed = 1;
    for (int round = 0; round < 300; round++)
        for (uint64_t nr = 0; nr < MODEL_CALLS; nr++) {
            for (int i = 0; i < 6; i++) {
                seed = seed * 6364136223846793005ull + 1442695040888963407ull;
                a[i] = odd[(seed >> 33) % ARRAY_LEN(odd)];
            }
            if (scratch_begin(&s, tb, nr, a)) scratch_end(&s, tb, nr, a, GATE_ABORTED);
        }
}

static int make_thread(void **state) {
    tb = mmap((void *)LAYOUT_THREADS, PAGE_SIZE, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return tb == (void *)LAYOUT_THREADS ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),     cmocka_unit_test(test_failed_read),  cmocka_unit_test(test_aborted),
        cmocka_unit_test(test_vectors),  cmocka_unit_test(test_large_read),   cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_poll),     cmocka_unit_test(test_not_writable), cmocka_unit_test(test_select),
        cmocka_unit_test(test_epoll),    cmocka_unit_test(test_recvfrom),     cmocka_unit_test(test_recvmsg),
        cmocka_unit_test(test_recvmmsg), cmocka_unit_test(test_sendmmsg),     cmocka_unit_test(test_children),
        cmocka_unit_test(test_sleep),    cmocka_unit_test(test_requests),     cmocka_unit_test(test_queues),
        cmocka_unit_test(test_offsets),  cmocka_unit_test(test_bound),        cmocka_unit_test(test_hostile_arguments),
    };
    return cmocka_run_group_tests(tests, make_thread, NULL);
}
