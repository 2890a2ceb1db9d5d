#include "sphere/outputs.h"

#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/futex.h>
#include <linux/poll.h>
#include <linux/time_types.h>

#include "inproc/sys.h"
#include "recorder/order.h"
#include "sphere/channel.h"
#include "sphere/checkpoint.h"
#include "sphere/debug.h"
#include "sphere/gate.h"
#include "sphere/page_log.h"
#include "sphere/sys/model.h"
#include "sphere/sys/special.h"

/* Descriptors from OUT_FDS on are not followed. */
static uint32_t which(const struct files *f, uint64_t fd) {
    if (fd >= OUT_FDS) return 0;
    return f->out_fds[1][fd / 64] >> fd % 64 & 1 ? 1 : f->out_fds[2][fd / 64] >> fd % 64 & 1 ? 2 : 0;
}

static void set(struct files *f, uint64_t fd, uint32_t value) {
    if (fd >= OUT_FDS) return;
    for (uint32_t i = 1; i <= 2; i++) {
        uint64_t *word = &f->out_fds[i][fd / 64];
        *word = (*word & ~(1ull << fd % 64)) | (uint64_t)(value == i) << fd % 64;
    }
}

static bool is_write(uint64_t nr) {
    switch (nr) {
    case __NR_write:
    case __NR_writev:
    case __NR_pwrite64:
    case __NR_pwritev:
    case __NR_pwritev2:
    case __NR_sendto: return true;
    default: return false;
    }
}

/* ---- one writer at a time ---- */

#define LOCK_WAIT_NS 5000000
#define LOCK_WAITS 100 /* in a row, after which somebody's output is stuck */

/* Who has the lock may need the turn, or a page of ours, to give it up. False: nobody did, for some time. */
static bool wait_for_lock(struct thread *t, uint32_t holder) {
    struct __kernel_timespec timeout = {0, LOCK_WAIT_NS};
    bool lends = order_is_shared();
    if (lends) {
        t->turn_lent = true;
        checkpoint_park(t, true);
        order_enter_call(t, true);
    }
    long ret = SYS(futex, &the_channel->out_lock, FUTEX_WAIT, holder, &timeout, 0, 0);
    if (lends) {
        order_leave_call(t);
        t->turn_lent = false;
        if (unlikely(t->owes)) checkpoint_pay(t);
    }
    return ret != -ETIMEDOUT;
}

/* Held by process id, so that a holder that was killed can be told. */
static bool lock(struct thread *t) {
    uint32_t self = channel_pid();
    for (int quiet = 0; quiet < LOCK_WAITS;) {
        uint32_t holder = 0;
        if (__atomic_compare_exchange_n(&the_channel->out_lock, &holder, self, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return true;
        if (channel_is_gone(holder)) {
            __atomic_compare_exchange_n(&the_channel->out_lock, &holder, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
            continue;
        }
        quiet = wait_for_lock(t, holder) ? 0 : quiet + 1;
    }
    return false; /* ours need not be */
}

static void unlock(void) {
    __atomic_store_n(&the_channel->out_lock, 0, __ATOMIC_RELEASE);
    SYS(futex, &the_channel->out_lock, FUTEX_WAKE, 1, 0, 0, 0);
}

bool outputs_begin(struct thread *t, uint64_t nr, const uint64_t a[6], struct output *out) {
    if (!is_write(nr)) return false;
    out->fd = which(t->files, a[0]);
    if (!out->fd) return false;
    out->locked = __atomic_load_n(&the_channel->next_stream, __ATOMIC_RELAXED) > 1 && lock(t);
    return true;
}

#define ALWAYS_FITS 4096 /* PIPE_BUF: what poll promises room for */

bool outputs_is_ready(uint64_t nr, const uint64_t a[6]) {
    uint64_t len = a[2], piece[2];
    if (nr == __NR_writev || nr == __NR_pwritev || nr == __NR_pwritev2) {
        len = 0;
        for (uint64_t i = 0; i < a[2] && i < 1024 && guest_read(piece, a[1] + 16 * i, 16); i++) len += piece[1];
    }
    struct pollfd p = {.fd = (int)a[0], .events = POLLOUT};
    return len <= ALWAYS_FITS && SYS(poll, &p, 1, 0) == 1 && (p.revents & POLLOUT);
}

bool outputs_end(struct output *out, long ret) {
    if (ret > 0) out->seq = __atomic_fetch_add(&the_channel->out_seq, 1, __ATOMIC_RELAXED);
    if (out->locked) unlock();
    return ret > 0;
}

/* ---- descriptors ---- */

#define FILE_TYPE 0170000
#define REGULAR 0100000

void outputs_identify(void) {
    struct stat st;
    for (int fd = 1; fd <= 2; fd++)
        if (SYS(fstat, fd, &st) == 0) the_channel->out_ids[fd] = (struct channel_file_id){st.st_dev, st.st_ino};
}

/* Opened again (/dev/stdout), or come from another process. A regular file that is opened again is written at another place: what
 * becomes of it cannot be repeated. */
static uint32_t which_file(long fd, bool same_place) {
    long mode = SYS(fcntl, fd, F_GETFL);
    struct stat st;
    if (mode < 0 || (mode & O_PATH) || (mode & O_ACCMODE) == O_RDONLY || SYS(fstat, fd, &st) != 0) return 0;
    if ((st.st_mode & FILE_TYPE) == REGULAR && !same_place) return 0;
    for (uint32_t i = 1; i <= 2; i++)
        if (the_channel->out_ids[i].ino == st.st_ino && the_channel->out_ids[i].dev == st.st_dev) return i;
    return 0;
}

long outputs_refuse(struct thread *t, uint64_t nr, const uint64_t a[6]) {
    switch (nr) {
    case __NR_sendfile: return which(t->files, a[0]) ? -EINVAL : 0;
    case __NR_splice:
    case __NR_copy_file_range: return which(t->files, a[2]) ? -EINVAL : 0;
    case __NR_tee: return which(t->files, a[1]) ? -EINVAL : 0;
    case __NR_vmsplice: return which(t->files, a[0]) ? -EBADF : 0;
    default: return 0;
    }
}

static bool follow_received(int32_t fd, void *files) {
    set(files, (uint32_t)fd, which_file(fd, true));
    return false;
}

void outputs_follow(struct thread *t, uint64_t nr, const uint64_t a[6], long ret) {
    struct files *f = t->files;
    if (ret < 0) return;
    switch (nr) {
    case __NR_open:
        if (a[1] & O_ACCMODE) set(f, (uint64_t)ret, which_file(ret, false));
        break;
    case __NR_openat:
        if (a[2] & O_ACCMODE) set(f, (uint64_t)ret, which_file(ret, false));
        break;
    case __NR_openat2:
    case __NR_creat: set(f, (uint64_t)ret, which_file(ret, false)); break;
    case __NR_pidfd_getfd: set(f, (uint64_t)ret, which_file(ret, true)); break;
    case __NR_recvmsg: fd_any_in_message(a[1], follow_received, f); break;
    case __NR_recvmmsg:
        for (long i = 0; i < ret; i++)
            fd_any_in_message(a[1] + sizeof(struct mmsghdr_raw) * (uint64_t)i, follow_received, f);
        break;
    case __NR_close: set(f, (uint32_t)a[0], 0); break;
    case __NR_dup:
    case __NR_dup2:
    case __NR_dup3: set(f, (uint64_t)ret, which(f, (uint32_t)a[0])); break;
    case __NR_fcntl:
        if (a[1] == F_DUPFD || a[1] == F_DUPFD_CLOEXEC) set(f, (uint64_t)ret, which(f, (uint32_t)a[0]));
        break;
    case __NR_close_range:
        if (!(a[2] & 4 /* CLOSE_RANGE_CLOEXEC */))
            for (uint64_t fd = (uint32_t)a[0]; fd <= (uint32_t)a[1] && fd < OUT_FDS; fd++) set(f, fd, 0);
        break;
    }
}

void outputs_after_exec(struct files *f) {
    uint32_t self = channel_pid(); /* another thread may have been writing */
    if (__atomic_compare_exchange_n(&the_channel->out_lock, &self, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        SYS(futex, &the_channel->out_lock, FUTEX_WAKE, 1, 0, 0, 0);
    for (uint64_t fd = 0; fd < OUT_FDS; fd++)
        if (which(f, fd) && SYS(fcntl, fd, F_GETFD) < 0) set(f, fd, 0);
}

/* ---- replay ---- */

/* Outputs come in the recorded order, however long somebody computes in front of his. One that never comes (its process was killed
 * before it could say so) is not waited for forever: those who wait for something themselves take little time. */
#define QUIET_ROUNDS 100   /* of 100 ms */
#define GOES_ON_NS 5000000 /* of processor time meanwhile: not spent with looking up only */

static uint64_t taken_ns[CHANNEL_RINGS]; /* by those who use them, when they were looked at last */

static uint64_t processor_time(uint32_t pid) {
    struct __kernel_timespec t;
    int clock = (int)(~pid << 3 | 2 /* CPUCLOCK_SCHED, of a whole process */);
    return SYS(clock_gettime, clock, &t) == 0 ? (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec : 0;
}

static bool goes_on(const struct ring *r, uint64_t *before) {
    uint32_t state = __atomic_load_n(&r->state, __ATOMIC_ACQUIRE);
    if (state == RING_FREE || state == RING_DONE) return false;
    uint64_t now = processor_time(r->pid), was = *before;
    *before = now;
    return !__atomic_load_n(&r->awaits_output, __ATOMIC_ACQUIRE) && (now < was || now - was >= GOES_ON_NS);
}

bool outputs_others_go_on(void) {
    bool any = false;
    for (uint32_t i = 0; i < the_channel->n_rings; i++) any |= goes_on(&the_channel->rings[i], &taken_ns[i]);
    return any;
}

static void await_place(uint64_t seq) {
    uint64_t last = UINT64_MAX;
    int quiet = 0;
    for (;;) {
        uint32_t word = __atomic_load_n(&the_channel->out_futex, __ATOMIC_ACQUIRE);
        uint64_t now = __atomic_load_n(&the_channel->out_seq, __ATOMIC_ACQUIRE);
        bool is_over = now >= seq || (quiet == QUIET_ROUNDS && !outputs_others_go_on());
        channel_awaits_output(!is_over);
        if (is_over) return;
        quiet = now == last && quiet < QUIET_ROUNDS ? quiet + 1 : 0;
        last = now;
        struct __kernel_timespec timeout = {0, 100000000};
        SYS(futex, &the_channel->out_futex, FUTEX_WAIT, word, &timeout, 0, 0);
    }
}

/* Nobody may want to see it (a pipe without a reader, a closed descriptor), which is not our failure. */
static void note_failure(long ret) {
    int32_t none = 0;
    if (ret == -EPIPE || ret == -EBADF) return;
    __atomic_compare_exchange_n(&the_channel->out_error, &none, (int32_t)-ret, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static void write_all(uint32_t fd, gaddr from, uint64_t n) {
    char piece[4096];
    while (n) {
        uint64_t k = MIN(n, sizeof piece);
        if (!guest_read(piece, from, k)) return;
        for (uint64_t done = 0; done < k;) {
            long ret = SYS(write, fd, piece + done, k - done);
            if (ret == -EINTR || ret == -EAGAIN) continue;
            if (ret <= 0) return note_failure(ret);
            done += (uint64_t)ret;
        }
        from += k;
        n -= k;
    }
}

static void write_vector(uint32_t fd, gaddr v, uint64_t count, uint64_t n) {
    uint64_t piece[2];
    for (uint64_t i = 0; i < count && n && guest_read(piece, v + 16 * i, 16); i++) {
        uint64_t k = MIN(piece[1], n);
        write_all(fd, piece[0], k);
        n -= k;
    }
}

void outputs_repeat(uint64_t nr, const uint64_t a[6], uint32_t fd, uint64_t seq, long ret) {
    if (ret <= 0 || (fd != 1 && fd != 2) || page_log_is_written) return;
    if (unlikely(debug_is_on)) { /* the first time only; others of the sphere are not there */
        if (debug_is_quiet() || seq < __atomic_load_n(&the_channel->out_seq, __ATOMIC_RELAXED)) return;
    } else {
        await_place(seq);
    }
    if (nr == __NR_writev || nr == __NR_pwritev || nr == __NR_pwritev2)
        write_vector(fd, a[1], a[2], (uint64_t)ret);
    else
        write_all(fd, a[1], (uint64_t)ret);
    uint64_t now = __atomic_load_n(&the_channel->out_seq, __ATOMIC_RELAXED);
    while (now <= seq && !__atomic_compare_exchange_n(&the_channel->out_seq, &now, seq + 1, false, __ATOMIC_RELEASE,
                                                      __ATOMIC_RELAXED)) {}
    __atomic_fetch_add(&the_channel->out_futex, 1, __ATOMIC_RELEASE);
    SYS(futex, &the_channel->out_futex, FUTEX_WAKE, INT32_MAX, 0, 0, 0);
}
