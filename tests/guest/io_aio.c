/* Asynchronous input and output of Linux (io_setup, io_submit ...): what is read and written, in which order it is done, and that a
 * program which looks at the ring itself finds the same. */
#include "guest.h"

#include <linux/aio_abi.h>
#include <sys/eventfd.h>
#include <sys/uio.h>

#define BLOCK 4096
#define BLOCKS 16

struct ring { /* a context is the address of one */
    unsigned id, nr, head, tail, magic, compat_features, incompat_features, header_length;
    struct io_event events[];
};

static aio_context_t ctx;
static int fd;
static char file[BLOCKS][BLOCK] __attribute__((aligned(BLOCK)));
static char back[BLOCKS][BLOCK] __attribute__((aligned(BLOCK)));

static long submit(long n, struct iocb **v) { return syscall(SYS_io_submit, ctx, n, v); }
static long get(long least, long most, struct io_event *e, struct timespec *t) {
    return syscall(SYS_io_getevents, ctx, least, most, e, t);
}

static struct iocb block(int op, int i, void *buf) {
    return (struct iocb){.aio_data = (unsigned)i + 100,
                         .aio_key = 7,
                         .aio_lio_opcode = (unsigned short)op,
                         .aio_fildes = (unsigned)fd,
                         .aio_buf = (uintptr_t)buf,
                         .aio_nbytes = BLOCK,
                         .aio_offset = (long)i * BLOCK};
}

/* All of them, in any number of calls. */
static void do_all(struct iocb *cb, int n, struct io_event *e) {
    struct iocb *v[BLOCKS];
    for (int i = 0; i < n; i++) v[i] = &cb[i];
    for (int sent = 0; sent < n;) {
        long k = submit(n - sent, v + sent);
        if (k <= 0) perror("io_submit"), exit(1);
        sent += (int)k;
    }
    for (int got = 0; got < n;) got += (int)get(1, n - got, e + got, NULL);
}

static void blocks(void) {
    struct iocb cb[BLOCKS];
    struct io_event e[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) memset(file[i], 'a' + i, BLOCK), cb[i] = block(IOCB_CMD_PWRITE, i, file[i]);
    do_all(cb, BLOCKS, e);
    bool ok = true;
    for (int i = 0; i < BLOCKS; i++) ok &= e[i].res == BLOCK && e[i].res2 == 0 && cb[e[i].data - 100].aio_key == 0;
    for (int i = 0; i < BLOCKS; i++) cb[i] = block(IOCB_CMD_PREAD, i, back[BLOCKS - 1 - i]);
    do_all(cb, BLOCKS, e);
    for (int i = 0; i < BLOCKS; i++) ok &= e[i].res == BLOCK && e[i].obj == (uintptr_t)&cb[e[i].data - 100];
    for (int i = 0; i < BLOCKS; i++)
        ok &= back[BLOCKS - 1 - i][0] == 'a' + i && back[BLOCKS - 1 - i][BLOCK - 1] == 'a' + i;
    printf("blocks: %d\n", ok);
}

static void others(void) {
    struct iovec v[2] = {{back[0], 10}, {back[1], 20}};
    struct io_event e[4];
    struct iocb cb[4] = {block(IOCB_CMD_PREADV, 3, v), block(IOCB_CMD_FSYNC, 0, NULL), block(IOCB_CMD_FDSYNC, 0, NULL),
                         block(IOCB_CMD_PREAD, BLOCKS, back[2])};
    cb[0].aio_nbytes = 2;
    cb[1].aio_nbytes = cb[2].aio_nbytes = 0;
    for (int i = 0; i < 4; i++) { /* one after the other: the kernel may be done with the third before the first */
        do_all(&cb[i], 1, e);
        printf("result %lld\n", e[0].res);
    }
    printf("%.10s %.20s\n", back[0], back[1]);
    struct iocb read_flags = block(IOCB_CMD_PREAD, 2, back[3]);
    read_flags.aio_rw_flags = 1; /* RWF_HIPRI: a hint */
    do_all(&read_flags, 1, e);
    printf("with flags: %lld %c\n", e[0].res, back[3][7]);
}

static void errors(void) {
    struct io_event e;
    struct timespec none = {0, 0}, short_time = {0, 1000000};
    struct iocb bad = block(99, 0, back), closed = block(IOCB_CMD_PREAD, 0, back),
                wild = block(IOCB_CMD_PREAD, 0, (void *)64);
    struct iocb *v[] = {&bad, &closed};
    closed.aio_fildes = 999;
    CHECK(submit(1, v) == -1 && errno == EINVAL);
    CHECK(submit(1, v + 1) == -1 && errno == EBADF);
    CHECK(submit(0, v) == 0);
    CHECK(submit(-1, v) == -1 && errno == EINVAL);
    CHECK(submit(1, NULL) == -1 && errno == EFAULT);
    CHECK(get(0, 1, &e, &none) == 0 && get(1, 1, &e, &short_time) == 0);
    CHECK(get(2, 1, &e, NULL) == -1 && errno == EINVAL);
    do_all(&wild, 1, &e);
    CHECK(e.res == -EFAULT);
    CHECK(syscall(SYS_io_cancel, ctx, &wild, &e) == -1 && errno == EINVAL);
    aio_context_t other = 0;
    CHECK(syscall(SYS_io_setup, 0, &other) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_io_setup, 1, &ctx) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_io_destroy, other) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_io_submit, (aio_context_t)file, 1, v) == -1 && errno == EINVAL);
}

/* As libaio, fio and QEMU do. */
static void look_at_ring(void) {
    struct ring *r = (void *)ctx;
    int signalled = eventfd(0, 0);
    struct iocb cb = block(IOCB_CMD_PREAD, 5, back[5]), *v[] = {&cb};
    cb.aio_flags = IOCB_FLAG_RESFD;
    cb.aio_resfd = (unsigned)signalled;
    CHECK(r->magic == 0xa10a10a1 && r->header_length == 32 && r->head == r->tail && r->nr > 16);
    CHECK(submit(1, v) == 1);
    uint64_t n = 0;
    CHECK(read(signalled, &n, 8) == 8 && n == 1);
    CHECK((r->tail + r->nr - r->head) % r->nr == 1);
    printf("in the ring: %lld %lld %c\n", (long long)r->events[r->head].data, (long long)r->events[r->head].res,
           back[5][0]);
    r->head = (r->head + 1) % r->nr;
    CHECK(get(0, 1, r->events, &(struct timespec){0, 0}) == 0);
    close(signalled);
}

/* What a pipe has to give comes from another thread, which waits for a third. */
static int pipes[2];

static void *give(void *unused) {
    (void)unused;
    sleep_ms(50);
    if (write(pipes[1], "from a thread", 13) != 13) abort();
    return NULL;
}

static void *await(void *e) {
    long n = get(1, 1, e, NULL);
    return (void *)n;
}

static void threads(void) {
    pthread_t giver, waiter;
    char text[32] = "";
    struct io_event e = {0};
    struct iocb cb = block(IOCB_CMD_PREAD, 0, text), *v[] = {&cb};
    void *got = NULL;
    CHECK(pipe(pipes) == 0);
    cb.aio_fildes = (unsigned)pipes[0];
    cb.aio_nbytes = sizeof text - 1;
    cb.aio_offset = 0;
    pthread_create(&waiter, NULL, await, &e);
    pthread_create(&giver, NULL, give, NULL);
    CHECK(submit(1, v) == 1);
    pthread_join(giver, NULL);
    pthread_join(waiter, &got);
    printf("pipe: %ld, %lld, %s\n", (long)got, e.res, text);
}

static volatile sig_atomic_t handled;
static void on_alarm(int sig) { handled = sig; }

static void signals(void) {
    struct io_event e;
    struct sigaction sa = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &sa, NULL);
    struct itimerval soon = {{0, 0}, {0, 50000}};
    setitimer(ITIMER_REAL, &soon, NULL);
    CHECK(get(1, 1, &e, NULL) == -1 && errno == EINTR && handled == SIGALRM);
    sigset_t all, none;
    sigfillset(&all), sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &all, NULL);
    handled = 0;
    setitimer(ITIMER_REAL, &soon, NULL);
    struct {
        const sigset_t *mask;
        size_t len;
    } arg = {&none, 8};
    CHECK(syscall(SYS_io_pgetevents, ctx, 1, 1, &e, NULL, &arg) == -1 && errno == EINTR && handled == SIGALRM);
    sigset_t now;
    sigprocmask(SIG_SETMASK, &none, &now);
    CHECK(sigismember(&now, SIGALRM) && sigismember(&now, SIGUSR1));
}

int main(void) {
    if (syscall(SYS_io_setup, BLOCKS, &ctx) != 0) return errno == ENOSYS ? 77 : 1;
    fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
    blocks();
    others();
    errors();
    look_at_ring();
    threads();
    signals();
    CHECK(syscall(SYS_io_destroy, ctx) == 0 && syscall(SYS_io_destroy, ctx) == -1 && errno == EINVAL);
    return finish();
}
