#include "sphere/aio.h"

#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <linux/mman.h>
#include <linux/time_types.h>

#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/forced_write.h"
#include "sphere/gate.h"

#define RING_MAGIC 0xa10a10a1u
#define MOST_EVENTS 65536u /* what fs.aio-max-nr says to begin with */
#define MOST_SUBMITTED 1024
#define SEEK_CUR_ 1

/* A context is the address of this, as the kernel lays it out. */
struct ring {
    uint32_t id, nr;     /* how many there is room for */
    uint32_t head, tail; /* what is done and not taken yet */
    uint32_t magic, compat_features, incompat_features, header_length;
};

struct done { /* by the last io_submit() */
    gaddr at;
    struct iocb iocb;
    int64_t res;
};

static struct done done[MOST_SUBMITTED];
static uint32_t bell; /* futex: counted up when something is done */

bool aio_is(uint64_t nr) { return (nr >= __NR_io_setup && nr <= __NR_io_cancel) || nr == __NR_io_pgetevents; }

/* ---- contexts ---- */

static uint64_t ring_size(uint32_t events) { return PAGE_UP(sizeof(struct ring) + events * sizeof(struct io_event)); }

/* Room for twice as many, as the kernel makes it. */
static uint64_t size_for(uint32_t asked) { return ring_size(2 * asked + 2); }

static bool read_ring(gaddr ctx, struct ring *r) {
    return ctx && !(ctx & ~PAGE_MASK) && guest_read(r, ctx, sizeof *r) && r->magic == RING_MAGIC &&
           r->header_length == sizeof *r && r->nr <= 3 * MOST_EVENTS && r->head < r->nr && r->tail < r->nr;
}

static uint32_t in_ring(const struct ring *r) { return (r->tail + r->nr - r->head) % r->nr; }

static gaddr event_at(gaddr ctx, const struct ring *r, uint32_t i) {
    return ctx + sizeof *r + (uint64_t)(i % r->nr) * sizeof(struct io_event);
}

static long setup(const uint64_t a[6]) {
    uint64_t ctx;
    uint32_t asked = (uint32_t)a[0];
    if (!guest_read(&ctx, a[1], sizeof ctx)) return -EFAULT;
    if (ctx || !asked) return -EINVAL;
    if (asked > MOST_EVENTS) return -EAGAIN;
    uint64_t size = size_for(asked);
    long at = aspace_mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sys_failed(at)) return -ENOMEM;
    struct ring r = {.nr = (uint32_t)((size - sizeof r) / sizeof(struct io_event)),
                     .magic = RING_MAGIC,
                     .compat_features = 1,
                     .header_length = sizeof r};
    ctx = (gaddr)at;
    if (guest_write(ctx, &r, sizeof r) && forced_write(a[1], &ctx, sizeof ctx, false)) return 0;
    aspace_munmap(ctx, size);
    return -EFAULT;
}

long aio_map_again(const uint64_t a[6], gaddr ctx) {
    struct mapping m = {.start = ctx,
                        .end = ctx + size_for((uint32_t)a[0]),
                        .prot = PROT_READ | PROT_WRITE,
                        .flags = MAP_PRIVATE | MAP_ANONYMOUS,
                        .was_writable = true};
    return (uint32_t)a[0] > MOST_EVENTS ? -EINVAL : aspace_restore(&m, -1, 0);
}

long aio_destroy(const uint64_t a[6]) {
    struct ring r;
    return read_ring(a[0], &r) ? aspace_munmap(a[0], ring_size(r.nr)) : -EINVAL;
}

/* ---- operations ---- */

static bool is_seekable(uint32_t fd) { return SYS(lseek, fd, 0, SEEK_CUR_) != -ESPIPE; }

/* The call that does what an iocb says. -errno: there is none. */
static long call_of(const struct iocb *c, uint64_t a[6]) {
    static struct iovec_raw one;
    static const uint16_t plain[] = {[IOCB_CMD_PREAD] = __NR_read,
                                     [IOCB_CMD_PWRITE] = __NR_write,
                                     [IOCB_CMD_PREADV] = __NR_readv,
                                     [IOCB_CMD_PWRITEV] = __NR_writev};
    static const uint16_t at[] = {[IOCB_CMD_PREAD] = __NR_pread64,
                                  [IOCB_CMD_PWRITE] = __NR_pwrite64,
                                  [IOCB_CMD_PREADV] = __NR_preadv,
                                  [IOCB_CMD_PWRITEV] = __NR_pwritev};
    uint32_t op = c->aio_lio_opcode, fd = c->aio_fildes;
    bool is_vector = op == IOCB_CMD_PREADV || op == IOCB_CMD_PWRITEV;
    memset(a, 0, 6 * sizeof *a);
    a[0] = fd;
    if (op == IOCB_CMD_FSYNC || op == IOCB_CMD_FDSYNC) {
        if (c->aio_buf || c->aio_offset || c->aio_nbytes || c->aio_rw_flags) return -EINVAL;
        return op == IOCB_CMD_FSYNC ? __NR_fsync : __NR_fdatasync;
    }
    if (op >= ARRAY_LEN(plain) || !(is_vector || op <= IOCB_CMD_PWRITE)) return -EINVAL;
    bool seeks = is_seekable(fd);
    a[1] = c->aio_buf;
    a[2] = c->aio_nbytes;
    a[3] = seeks ? (uint64_t)c->aio_offset : UINT64_MAX;
    if (!c->aio_rw_flags) return seeks ? at[op] : plain[op];
    if (!is_vector) {
        one = (struct iovec_raw){c->aio_buf, c->aio_nbytes};
        a[1] = (uint64_t)&one;
        a[2] = 1;
    }
    a[5] = (uint32_t)c->aio_rw_flags;
    bool reads = op == IOCB_CMD_PREAD || op == IOCB_CMD_PREADV;
    return reads ? __NR_preadv2 : __NR_pwritev2;
}

static bool is_eventfd(uint32_t fd) {
    char link[40], text[24];
    fmt_into(link, sizeof link, "/proc/self/fd/%u", fd);
    long n = SYS(readlink, link, text, sizeof text - 1);
    if (n < 0) return SYS(fcntl, fd, 1 /* F_GETFD */) >= 0; /* no /proc */
    text[n] = '\0';
    return strcmp(text, "anon_inode:[eventfd]") == 0;
}

/* 0, or why the kernel would not even begin. */
static long check(const struct iocb *c) {
    if (c->aio_reserved2 || (int64_t)c->aio_nbytes < 0) return -EINVAL;
    if (SYS(fcntl, c->aio_fildes, 1 /* F_GETFD */) < 0) return -EBADF;
    if (!(c->aio_flags & IOCB_FLAG_RESFD)) return 0;
    if (SYS(fcntl, c->aio_resfd, 1 /* F_GETFD */) < 0) return -EBADF;
    return is_eventfd(c->aio_resfd) ? 0 : -EINVAL;
}

/* Errors that the kernel finds when it is submitted, not when it is done. */
static bool is_early(const struct iocb *c, long ret) {
    bool syncs = c->aio_lio_opcode == IOCB_CMD_FSYNC || c->aio_lio_opcode == IOCB_CMD_FDSYNC;
    return ret == -EBADF || ret == -EOPNOTSUPP || (ret == -EINVAL && syncs);
}

static void complete(gaddr ctx, const struct done *d) {
    struct ring r;
    struct io_event e = {.data = d->iocb.aio_data, .obj = d->at, .res = d->res};
    uint32_t key = 0;
    forced_write(d->at + offsetof(struct iocb, aio_key), &key, sizeof key, false);
    if (read_ring(ctx, &r)) {
        forced_fill(event_at(ctx, &r, r.tail), &e, sizeof e);
        r.tail = (r.tail + 1) % r.nr;
        forced_fill(ctx + offsetof(struct ring, tail), &r.tail, sizeof r.tail);
    }
    uint64_t count = 1;
    if (d->iocb.aio_flags & IOCB_FLAG_RESFD) SYS(write, d->iocb.aio_resfd, &count, sizeof count);
}

/* What others must not see before it is in the log is there behind the first operation: only that may wait without the turn. */
static long submit_one(struct tblock *tb, const uint64_t a[6], uint32_t i, aio_issue_fn *issue) {
    struct ring r;
    struct done d = {0};
    uint64_t b[6];
    if (!read_ring(a[0], &r)) return -EINVAL;
    if (!guest_read(&d.at, a[2] + 8ull * i, 8) || !guest_read(&d.iocb, d.at, sizeof d.iocb)) return -EFAULT;
    if (in_ring(&r) + 1 == r.nr) return -EAGAIN;
    long ret = check(&d.iocb), nr = ret ? ret : call_of(&d.iocb, b);
    if (nr < 0) return nr;
    bool waits = !is_seekable(d.iocb.aio_fildes);
    if (i && waits) return -EAGAIN;
    d.res = issue(tb, (uint64_t)nr, b, waits);
    if (d.res == GATE_ABORTED || is_early(&d.iocb, d.res)) return d.res;
    done[i] = d;
    complete(a[0], &d);
    return 0;
}

static long submit(struct tblock *tb, const uint64_t a[6], aio_issue_fn *issue) {
    struct ring r;
    if (!read_ring(a[0], &r) || (int64_t)a[1] < 0) return -EINVAL;
    uint32_t n = 0;
    long ret = 0;
    for (; n < MIN(a[1], (uint64_t)MOST_SUBMITTED); n++)
        if ((ret = submit_one(tb, a, n, issue))) break;
    if (!n) return ret;
    __atomic_add_fetch(&bell, 1, __ATOMIC_RELEASE);
    SYS(futex, &bell, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT32_MAX, 0, 0, 0);
    return n;
}

/* ---- what is done ---- */

/* Up to a[2] events; how many. */
static long take(const uint64_t a[6], const struct ring *r) {
    uint32_t n = (uint32_t)MIN((uint64_t)in_ring(r), a[2]);
    for (uint32_t i = 0; i < n; i++) {
        struct io_event e;
        if (!guest_read(&e, event_at(a[0], r, r->head + i), sizeof e) ||
            !forced_write(a[3] + i * sizeof e, &e, sizeof e, false))
            return -EFAULT;
    }
    uint32_t head = (r->head + n) % r->nr;
    if (n) forced_fill(a[0] + offsetof(struct ring, head), &head, sizeof head);
    return n;
}

static int64_t now_ns(void) {
    int64_t t[2] = {0};
    SYS(clock_gettime, 1 /* CLOCK_MONOTONIC */, t);
    return t[0] * 1000000000ll + t[1];
}

#define FOREVER INT64_MAX
#define SLICE_NS 100000000ll

/* Until somebody has submitted something, or for a while; with a mask of its own shorter, as nobody calls. */
static long wait(struct tblock *tb, uint32_t heard, int64_t left, gaddr mask, aio_issue_fn *issue) {
    struct __kernel_timespec t = {0, MIN(left, mask ? SLICE_NS / 10 : SLICE_NS)};
    uint64_t on_bell[6] = {(uint64_t)&bell, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, heard, (uint64_t)&t};
    uint64_t with_mask[6] = {0, 0, (uint64_t)&t, mask, 8};
    return mask ? issue(tb, __NR_ppoll, with_mask, true) : issue(tb, __NR_futex, on_bell, true);
}

static long get_events(struct tblock *tb, const uint64_t a[6], gaddr mask, aio_issue_fn *issue) {
    struct ring r;
    struct __kernel_timespec t;
    int64_t until = FOREVER, left = FOREVER;
    if (a[4] && !guest_read(&t, a[4], sizeof t)) return -EFAULT;
    if (a[4]) until = t.tv_sec > INT32_MAX ? FOREVER : now_ns() + t.tv_sec * 1000000000ll + t.tv_nsec;
    for (int i = 0;; i++) {
        uint32_t heard = __atomic_load_n(&bell, __ATOMIC_ACQUIRE);
        if (!read_ring(a[0], &r) || (int64_t)a[1] < 0 || (int64_t)a[2] < (int64_t)a[1]) return -EINVAL;
        if (until != FOREVER) left = until - now_ns();
        if (in_ring(&r) >= a[1] || left <= 0) return take(a, &r);
        long ret = wait(tb, heard, left, mask, issue);
        if (ret == GATE_ABORTED && i == 0) return ret;
        if (ret != GATE_ABORTED && ret != -EINTR) continue;
        if (!read_ring(a[0], &r)) return -EINVAL;
        ret = take(a, &r);
        return ret ? ret : -EINTR;
    }
}

/* The mask comes as a pointer to {pointer, length}. */
static long get_events_with_mask(struct tblock *tb, const uint64_t a[6], aio_issue_fn *issue) {
    uint64_t arg[2] = {0};
    if (a[5] && !guest_read(arg, a[5], sizeof arg)) return -EFAULT;
    if (arg[0] && arg[1] != 8) return -EINVAL;
    return get_events(tb, a, arg[0], issue);
}

/* Everything is done already. */
static long cancel(const uint64_t a[6]) {
    uint32_t key;
    if (!guest_read(&key, a[1] + offsetof(struct iocb, aio_key), sizeof key)) return -EFAULT;
    return -EINVAL;
}

/* ---- the calls ---- */

long aio_call(struct tblock *tb, uint64_t nr, const uint64_t a[6], aio_issue_fn *issue) {
    switch (nr) {
    case __NR_io_setup: return setup(a);
    case __NR_io_destroy: return aio_destroy(a);
    case __NR_io_submit: return submit(tb, a, issue);
    case __NR_io_getevents: return get_events(tb, a, 0, issue);
    case __NR_io_pgetevents: return get_events_with_mask(tb, a, issue);
    default: return cancel(a);
    }
}

static void wrote_submitted(const uint64_t a[6], uint32_t n, struct writes *w) {
    struct ring r;
    for (uint32_t i = 0; i < n; i++) {
        const struct done *d = &done[i];
        uint64_t b[6];
        long nr = call_of(&d->iocb, b);
        struct writes of_call = *w;
        writes_range(w, d->at + offsetof(struct iocb, aio_key), sizeof(uint32_t));
        w->ret = d->res;
        if (nr >= 0) model_writes((uint64_t)nr, b, w);
        w->ret = of_call.ret;
        w->is_done = of_call.is_done;
    }
    if (!read_ring(a[0], &r)) return;
    for (uint32_t i = 0; i < n; i++)
        writes_range(w, event_at(a[0], &r, r.tail + r.nr - n + i), sizeof(struct io_event));
    writes_range(w, a[0] + offsetof(struct ring, tail), sizeof r.tail);
}

void aio_wrote(uint64_t nr, const uint64_t a[6], long ret, struct writes *w) {
    uint64_t ctx;
    if (nr == __NR_io_setup && ret == 0 && guest_read(&ctx, a[1], sizeof ctx))
        writes_range(w, ctx, sizeof(struct ring));
    if (nr == __NR_io_submit && ret > 0) wrote_submitted(a, (uint32_t)ret, w);
    if ((nr == __NR_io_getevents || nr == __NR_io_pgetevents) && ret > 0)
        writes_range(w, a[0] + offsetof(struct ring, head), sizeof(uint32_t));
}

void aio_each_done(struct thread *t, uint32_t n,
                   void (*f)(struct thread *t, uint64_t nr, const uint64_t a[6], long ret)) {
    uint64_t a[6];
    for (uint32_t i = 0; i < n; i++) {
        long nr = call_of(&done[i].iocb, a);
        if (nr >= 0) f(t, (uint64_t)nr, a, done[i].res);
    }
}
