/* The row engine: walks the rows of model.def. */
#include "sphere/sys/model.h"

#include <asm/prctl.h>
#include <asm/stat.h>
#include <asm/statfs.h>
#include <linux/aio_abi.h>
#include <linux/fcntl.h>
#include <linux/futex.h>
#include <linux/keyctl.h>
#include <linux/mman.h>
#include <linux/mqueue.h>
#include <linux/msg.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/sched.h>
#include <linux/sem.h>
#include <linux/shm.h>
#include <linux/stat.h>
#include <linux/sysinfo.h>
#include <linux/time_types.h>
#include <linux/times.h>
#include <linux/timex.h>
#include <linux/utsname.h>

#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/code_watch.h"
#include "sphere/segment.h"
#include "sphere/sys/special.h"

struct __attribute__((packed)) epoll_event_raw {
    uint32_t events;
    uint64_t value;
};

/* ---- the table ---- */

// clang-format off
#define IRREGULAR(X) \
    X(ioctl) X(mincore) X(madvise) X(mseal) X(getsockopt) X(setsockopt) X(clone) X(clone3) X(exit) X(wait4) \
    X(semctl) X(msgrcv) X(fcntl) X(prctl) X(nanosleep) X(clock_nanosleep) X(futex) X(futex2) X(futex_waitv) \
    X(futex_requeue) X(keyctl) X(name_to_handle) X(getxattrat) X(quotactl) X(quotactl_fd) X(sysfs) X(ptrace) X(modify_ldt) \
    X(bpf)
// clang-format on
#define IRREGULAR_ENUM(name) BY_##name,
#define IRREGULAR_DECLARE(name) irregular_fn writes_##name;
#define IRREGULAR_FN(name) [BY_##name] = writes_##name,
enum { IRREGULAR(IRREGULAR_ENUM) };
IRREGULAR(IRREGULAR_DECLARE)
static irregular_fn *const irregular[] = {IRREGULAR(IRREGULAR_FN)};

#define OUT_FIXED(p, type) \
    { OUT_OBJECT, p, 0, sizeof(type) }
#define OUT_SIZE(p, bytes) \
    { OUT_OBJECT, p, 0, bytes }
#define OUT_BUF(p, n) \
    { OUT_AT_MOST, p, n, 1 }
#define OUT_UPTO(p, n, type) \
    { OUT_AT_MOST, p, n, sizeof(type) }
#define OUT_ALL(p, n) \
    { OUT_COUNTED, p, n, 1 }
#define OUT_ARRAY(p, n, type) \
    { OUT_COUNTED, p, n, sizeof(type) }
#define OUT_BITS(p, n) \
    { OUT_BITSET, p, n, 0 }
#define OUT_PTR_LEN(p, l) \
    { OUT_VALUE_RESULT, p, l, 1 }
#define OUT_IOV(v, n) \
    { OUT_IOVEC, v, n, 0 }
#define OUT_MSGHDR(p) \
    { OUT_MSG, p, 0, 0 }
#define OUT_MMSGHDR(v, n) \
    { OUT_MSGS, v, n, 0 }
#define OUT_BY(function) \
    { OUT_IRREGULAR, 0, 0, BY_##function }
#define OUT_ANYWHERE \
    { OUT_UNKNOWN, 0, 0, 0 }

#define forward NULL
#define BLOCKS CALL_BLOCKS
#define EVEN_FAILED CALL_EVEN_FAILED

#define SYSCALL_NEW SYSCALL
#define SYSCALL(nr, name, does, flags, special, ...) [nr] = {#name, DOES_##does, flags, {__VA_ARGS__}},
const struct call_row model_rows[MODEL_CALLS] = {
#include "sphere/sys/model.def"
};
#undef SYSCALL

#define SYSCALL(nr, name, does, flags, special, ...) [nr] = special,
gate_fn *const model_special[MODEL_CALLS] = {
#include "sphere/sys/model.def"
};
#undef SYSCALL
#undef SYSCALL_NEW

#define SYSCALL_NEW(...)
#define SYSCALL(nr, name, ...) _Static_assert(__NR_##name == nr, #name);
#include "sphere/sys/model.def"
#undef SYSCALL
#undef SYSCALL_NEW

/* ---- regular outputs ---- */

#define BITS_MOST (1u << 20) /* descriptors that a process can have, and more than there are memory nodes */

bool writes_read(struct writes *w, void *to, gaddr from, size_t n) {
    if (!w->is_peek) return guest_read(to, from, n);
    bool is_there = guest_copy(to, (const void *)from, n) == 0;
    if (!is_there) w->anywhere(w);
    return is_there;
}

void writes_range(struct writes *w, gaddr start, uint64_t len) {
    if (!start || !len) return;
    if (start + len < start) len = -start - 1; /* to the end of everything */
    w->range(w, start, len);
}

static uint64_t mul(uint64_t n, uint64_t size) {
    uint64_t r;
    return __builtin_mul_overflow(n, size, &r) ? UINT64_MAX : r;
}

/* Objects or bytes that the result counts. */
static uint64_t result_or(const struct writes *w, uint64_t most) {
    if (!w->is_done) return most;
    return w->ret < 0 ? 0 : MIN((uint64_t)w->ret, most);
}

/* Pieces of one vector, together at most `most` bytes. */
static uint64_t write_iovecs(struct writes *w, gaddr v, uint64_t n, uint64_t most) {
    struct iovec_raw piece;
    for (uint64_t i = 0; i < n && i < IOV_MOST && most; i++) {
        if (!writes_read(w, &piece, v + i * sizeof piece, sizeof piece)) break;
        uint64_t len = MIN(piece.len, most);
        writes_range(w, piece.base, len);
        most -= len;
    }
    return most;
}

static void write_msg(struct writes *w, gaddr p, uint64_t most) {
    struct msghdr_raw h;
    if (!writes_read(w, &h, p, sizeof h)) return;
    writes_range(w, p + offsetof(struct msghdr_raw, name_len), sizeof h.name_len);
    writes_range(w, p + offsetof(struct msghdr_raw, control_len), sizeof h.control_len);
    writes_range(w, p + offsetof(struct msghdr_raw, flags), sizeof h.flags);
    writes_range(w, h.name, h.name_len);
    writes_range(w, h.control, h.control_len);
    write_iovecs(w, h.iov, h.iov_len, most);
}

static void write_msgs(struct writes *w, gaddr v, uint64_t n) {
    uint64_t count = result_or(w, n);
    for (uint64_t i = 0; i < count && i < IOV_MOST; i++) {
        gaddr at = v + i * sizeof(struct mmsghdr_raw);
        struct mmsghdr_raw m;
        if (!writes_read(w, &m, at, sizeof m)) return;
        write_msg(w, at, w->is_done ? m.len : UINT64_MAX);
        writes_range(w, at + offsetof(struct mmsghdr_raw, len), sizeof m.len);
    }
}

static void write_value_result(struct writes *w, gaddr p, gaddr len_at) {
    uint32_t len;
    if (!len_at || !writes_read(w, &len, len_at, sizeof len)) return;
    writes_range(w, p, len);
    writes_range(w, len_at, sizeof len);
}

static void write_out(struct writes *w, const struct out *o, const uint64_t a[6]) {
    uint64_t p = a[o->ptr], n = a[o->count];
    switch ((enum out_kind)o->kind) {
    case OUT_END: break;
    case OUT_OBJECT: writes_range(w, p, o->size); break;
    case OUT_COUNTED: writes_range(w, p, mul(o->size == 1 ? n : (uint32_t)n, o->size)); break;
    case OUT_AT_MOST: writes_range(w, p, mul(result_or(w, n), o->size)); break;
    case OUT_BITSET: writes_range(w, p, (MIN((uint32_t)n, BITS_MOST) + 63ull) / 64 * 8); break;
    case OUT_VALUE_RESULT: write_value_result(w, p, n); break;
    case OUT_IOVEC: write_iovecs(w, p, n, result_or(w, UINT64_MAX)); break;
    case OUT_MSG: write_msg(w, p, result_or(w, UINT64_MAX)); break;
    case OUT_MSGS: write_msgs(w, p, (uint32_t)n); break;
    case OUT_IRREGULAR: irregular[o->size](a, w); break;
    case OUT_UNKNOWN: w->anywhere(w); break;
    }
}

void model_writes(uint64_t nr, const uint64_t a[6], struct writes *w) {
    if (nr >= MODEL_CALLS || !model_rows[nr].does) {
        w->anywhere(w);
        return;
    }
    const struct call_row *row = &model_rows[nr];
    if (w->is_done && (w->ret == -EBADF || w->ret == -ENOTTY || w->ret == -ENOSYS)) return; /* looked at nothing */
    if (w->is_done && w->ret == -EFAULT) w->is_done = false; /* half way: all that could have been written */
    if (w->is_done && w->ret < 0 && !(row->flags & CALL_EVEN_FAILED)) return;
    for (int i = 0; i < MODEL_OUTS && row->out[i].kind; i++) write_out(w, &row->out[i], a);
}

enum does model_does(uint64_t nr, const uint64_t a[6]) {
    enum { SET_MDWE = 65, GET_MDWE = 66, REQ_XCOMP_PERM = 0x1023 };
    if (nr >= MODEL_CALLS) return DOES_UNKNOWN;
    switch (nr) {
    case __NR_prctl:
        switch ((int)a[0]) {
        case PR_SET_SECCOMP:
        case PR_GET_SECCOMP:
        case SET_MDWE:
        case GET_MDWE: return DOES_REEXEC;
        default: return DOES_EMULATE;
        }
    case __NR_arch_prctl: /* bases of segments, and leave to use AMX */
        return (a[0] >= ARCH_SET_GS && a[0] <= ARCH_GET_GS) || a[0] == REQ_XCOMP_PERM ? DOES_REEXEC : DOES_EMULATE;
    case __NR_seccomp: return a[0] <= 1 /* SECCOMP_SET_MODE_FILTER */ ? DOES_REEXEC : DOES_EMULATE;
    case __NR_modify_ldt: return segment_reads_ldt(a) ? DOES_EMULATE : DOES_REEXEC;
    default: return model_rows[nr].does;
    }
}

static void lift(struct writes *w, gaddr start, size_t len) { code_watch_before_kernel_write(start, len); }
static void lift_all(struct writes *w) { code_watch_before_any_kernel_write(); }

void model_before_kernel_write(uint64_t nr, const uint64_t a[6]) {
    struct writes w = {.range = lift, .anywhere = lift_all};
    model_writes(nr, a, &w);
}

struct window {
    struct writes w;
    gaddr start, end;
    bool hit;
};

static void window_range(struct writes *w, gaddr start, size_t len) {
    struct window *win = (struct window *)w;
    if (start < win->end && start + len > win->start) win->hit = true;
}

static void window_anywhere(struct writes *w) { ((struct window *)w)->hit = true; }

bool model_may_write(uint64_t nr, const uint64_t a[6], gaddr start, gaddr end) {
    if (nr == __NR_exit) return true; /* its row speaks of the calling thread */
    struct window win = {
        .w = {.range = window_range, .anywhere = window_anywhere, .is_peek = true}, .start = start, .end = end};
    model_writes(nr, a, &win.w);
    return win.hit;
}

/* ---- irregular calls ---- */

void writes_mincore(const uint64_t a[6], struct writes *w) { writes_range(w, a[2], PAGE_UP(a[1]) / PAGE_SIZE); }

/* Pages from `start` on that are not there: where memory was dropped, up to a page that is locked. */
static uint64_t absent(gaddr start, uint64_t len) {
    uint8_t there[256];
    struct mapping m;
    for (uint64_t done = 0; done < len;) {
        uint64_t n = MIN(len - done, sizeof there * PAGE_SIZE);
        if (SYS(mincore, start + done, n, there) != 0) return done;
        for (uint64_t i = 0; i < n; i += PAGE_SIZE, done += PAGE_SIZE)
            if ((there[i / PAGE_SIZE] & 1) || !aspace_find(start + done, &m) || !(m.prot & PROT_WRITE)) return done;
    }
    return len;
}

/* MADV_POPULATE_WRITE writes nothing, but the memory has to be writable. MADV_DONTNEED fails at memory that is locked, having
 * dropped what comes before; nothing is locked at replay. */
void writes_madvise(const uint64_t a[6], struct writes *w) {
    if (!w->is_done && (int)a[2] == MADV_POPULATE_WRITE) writes_range(w, a[0], a[1]);
    if (!w->is_done || w->ret != -EINVAL || ((int)a[2] != MADV_DONTNEED && (int)a[2] != MADV_FREE) || a[0] % PAGE_SIZE)
        return;
    writes_range(w, a[0], absent(a[0], PAGE_UP(a[1])));
}

void writes_mseal(const uint64_t a[6], struct writes *w) {
    if (!w->is_done) writes_range(w, a[0], a[1]);
}

/* The remainder, which only an interrupted sleep has. */
static void write_remainder(gaddr p, struct writes *w) {
    if (!w->is_done || w->ret == -EINTR) writes_range(w, p, sizeof(struct __kernel_timespec));
}

void writes_nanosleep(const uint64_t a[6], struct writes *w) { write_remainder(a[1], w); }
void writes_clock_nanosleep(const uint64_t a[6], struct writes *w) {
    if (!(a[1] & 1 /* TIMER_ABSTIME */)) write_remainder(a[3], w);
}

void writes_wait4(const uint64_t a[6], struct writes *w) {
    if (w->is_done && w->ret == 0) return; /* WNOHANG, and nobody to tell of */
    writes_range(w, a[1], 4);
    writes_range(w, a[3], sizeof(struct rusage));
}

void writes_name_to_handle(const uint64_t a[6], struct writes *w) {
    enum { HEAD = 8, HANDLE_MOST = 128 };
    uint32_t bytes;
    if (!writes_read(w, &bytes, a[2], sizeof bytes)) return;
    writes_range(w, a[2], HEAD + (w->is_done && w->ret < 0 ? 0 : MIN(bytes, HANDLE_MOST)));
}

/* Replacing a packet filter's tables gives back the counters of the old ones: struct ipt_replace, ip6t_replace, arpt_replace. */
void writes_setsockopt(const uint64_t a[6], struct writes *w) {
    enum { SOL_IP_ = 0, SOL_IPV6_ = 41, SET_REPLACE = 64, ARP_REPLACE = 96, COUNTER = 16, MOST = 1 << 20 };
    bool ip = (a[1] == SOL_IP_ || a[1] == SOL_IPV6_) && a[2] == SET_REPLACE,
         arp = a[1] == SOL_IP_ && a[2] == ARP_REPLACE;
    uint32_t n;
    uint64_t counters, hooks = arp ? 3 : 5, at = a[3] + 44 + hooks * 8;
    if (!(ip || arp) || !writes_read(w, &n, at, 4) || !writes_read(w, &counters, at + 4, 8)) return;
    writes_range(w, counters, MIN(n, MOST) * COUNTER);
}

void writes_getsockopt(const uint64_t a[6], struct writes *w) {
    if (a[1] == 6 /* SOL_TCP */ && a[2] == 35 /* TCP_ZEROCOPY_RECEIVE: names more memory */) w->anywhere(w);
}

void writes_modify_ldt(const uint64_t a[6], struct writes *w) {
    int ret = (int)w->ret; /* the call gives 32 bits, errors too */
    if (!segment_reads_ldt(a) || (w->is_done && ret < 0 && ret != -EFAULT)) return;
    writes_range(w, a[1], w->is_done && ret > 0 ? MIN((uint32_t)ret, a[2]) : a[2]);
}

/* What the kernel does for an ending thread: clears its tid word, marks the robust mutexes it holds. */
void writes_exit(const uint64_t a[6], struct writes *w) {
    uint64_t tid_word = 0, head = 0, len = 0;
    if (SYS(prctl, PR_GET_TID_ADDRESS, &tid_word, 0, 0, 0) != 0) {
        w->anywhere(w);
        return;
    }
    writes_range(w, tid_word, 4);
    struct {
        uint64_t next;
        int64_t offset;
        uint64_t pending;
    } list;
    if (SYS(get_robust_list, 0, &head, &len) != 0 || !head || !writes_read(w, &list, head, sizeof list)) return;
    if (list.pending) writes_range(w, (list.pending & ~1ull) + (uint64_t)list.offset, 4);
    uint64_t at = list.next & ~1ull;
    for (int i = 0; i < 2048 && at && at != head; i++) {
        writes_range(w, at + (uint64_t)list.offset, 4);
        uint64_t next;
        if (!writes_read(w, &next, at, 8)) return;
        at = next & ~1ull;
    }
}

/* GETALL: one word for each semaphore of the set. */
static void write_semaphores(int id, gaddr p, struct writes *w) {
    struct semid64_ds set;
    if (SYS(semctl, id, 0, IPC_STAT, &set) == 0) writes_range(w, p, set.sem_nsems * 2);
}

void writes_semctl(const uint64_t a[6], struct writes *w) {
    switch ((uint32_t)a[2] & ~0x100u /* IPC_64 */) {
    case IPC_STAT:
    case SEM_STAT:
    case SEM_STAT_ANY:
    case IPC_INFO:
    case SEM_INFO: writes_range(w, a[3], sizeof(struct semid64_ds)); break;
    case GETALL: write_semaphores((int)a[0], a[3], w); break;
    }
}

void writes_msgrcv(const uint64_t a[6], struct writes *w) {
    writes_range(w, a[1], 8 + result_or(w, MIN(a[2], 1ull << 40)));
}

void writes_fcntl(const uint64_t a[6], struct writes *w) {
    enum { GETOWNER_UIDS = 17, OFD_GETLK = 36, GETDELEG = 1039, LAST_KNOWN = 1040 };
    switch ((uint32_t)a[1]) {
    case F_GETLK:
    case OFD_GETLK: writes_range(w, a[2], sizeof(struct flock)); break;
    case F_GETOWN_EX:
    case GETOWNER_UIDS:
    case F_GET_RW_HINT:
    case F_GET_FILE_RW_HINT:
    case GETDELEG: writes_range(w, a[2], 8); break;
    default:
        if ((uint32_t)a[1] > LAST_KNOWN) w->anywhere(w);
    }
}

void writes_prctl(const uint64_t a[6], struct writes *w) {
    enum {
        GET_AUXV = 0x41555856,
        GET_SHADOW_STACK = 74,
        LAST_KNOWN = 80,
        SET_VMA = 0x53564d41,
        SET_PTRACER_ = 0x59616d61
    };
    switch ((uint32_t)a[0]) {
    case PR_GET_PDEATHSIG:
    case PR_GET_UNALIGN:
    case PR_GET_FPEMU:
    case PR_GET_FPEXC:
    case PR_GET_ENDIAN:
    case PR_GET_TSC:
    case PR_GET_CHILD_SUBREAPER: writes_range(w, a[1], 4); break;
    case PR_GET_TID_ADDRESS:
    case GET_SHADOW_STACK: writes_range(w, a[1], 8); break;
    case PR_GET_NAME: writes_range(w, a[1], 16); break;
    case PR_SET_MM: writes_range(w, a[2], 4); break; /* PR_SET_MM_MAP_SIZE */
    case PR_SCHED_CORE: writes_range(w, a[4], 8); break;
    case GET_AUXV: writes_range(w, a[1], a[2]); break;
    case SET_VMA:
    case SET_PTRACER_: break;
    default:
        if ((uint32_t)a[0] > LAST_KNOWN) w->anywhere(w);
    }
}

/* Waiting and waking only read; but the kernel finds a futex that is not private by a reference for writing. */
void writes_futex(const uint64_t a[6], struct writes *w) {
    int op = (int)a[1] & FUTEX_CMD_MASK;
    bool is_private = a[1] & FUTEX_PRIVATE_FLAG;
    bool first = !is_private && !w->is_done, second = false;
    switch (op) {
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
    case FUTEX_UNLOCK_PI:
    case FUTEX_TRYLOCK_PI: first = true; break;
    case FUTEX_WAKE_OP:
    case FUTEX_CMP_REQUEUE_PI:
    case FUTEX_WAIT_REQUEUE_PI: second = true; break;
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE: second = !is_private && !w->is_done; break;
    }
    if (first) writes_range(w, a[0], 4);
    if (second) writes_range(w, a[4], 4);
}

#define FUTEX2_PRIVATE_ 128

static void write_waiters(struct writes *w, gaddr v, uint64_t n) {
    if (w->is_done) return;
    struct {
        uint64_t value, at;
        uint32_t flags, pad;
    } waiter;
    for (uint64_t i = 0; i < n && i < 128 && writes_read(w, &waiter, v + i * sizeof waiter, sizeof waiter); i++)
        if (!(waiter.flags & FUTEX2_PRIVATE_)) writes_range(w, waiter.at, 4);
}

void writes_futex_waitv(const uint64_t a[6], struct writes *w) { write_waiters(w, a[0], (uint32_t)a[1]); }
void writes_futex_requeue(const uint64_t a[6], struct writes *w) { write_waiters(w, a[0], 2); }
void writes_futex2(const uint64_t a[6], struct writes *w) {
    if (!w->is_done && !(a[3] & FUTEX2_PRIVATE_)) writes_range(w, a[0], 4);
}

/* All that get something get one object. */
static void write_quota(uint32_t command, gaddr p, struct writes *w) {
    enum { GENERIC = 0x8000, XFS = 0x58, MOST = 256 };
    uint32_t family = command >> 16;
    if (family == GENERIC || family == XFS) writes_range(w, p, MOST);
}

void writes_quotactl(const uint64_t a[6], struct writes *w) { write_quota((uint32_t)a[0], a[3], w); }
void writes_quotactl_fd(const uint64_t a[6], struct writes *w) { write_quota((uint32_t)a[1], a[3], w); }

/* The name of a type of file system. */
void writes_sysfs(const uint64_t a[6], struct writes *w) {
    if (a[0] == 2) writes_range(w, a[2], 64);
}

void writes_keyctl(const uint64_t a[6], struct writes *w) {
    switch ((uint32_t)a[0]) {
    case KEYCTL_DESCRIBE:
    case KEYCTL_READ:
    case KEYCTL_GET_SECURITY: writes_range(w, a[2], result_or(w, a[3])); break;
    default:
        if ((uint32_t)a[0] > KEYCTL_GET_PERSISTENT) w->anywhere(w);
    }
}

/* The word of the child is written by the child, and once more when it ends. */
static void write_ids(uint64_t flags, gaddr pidfd, gaddr child, gaddr parent, struct writes *w) {
    if (flags & CLONE_PIDFD) writes_range(w, pidfd, 4);
    if (flags & CLONE_PARENT_SETTID) writes_range(w, parent, 4);
    if (flags & (CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID)) writes_range(w, child, 4);
}

void writes_clone(const uint64_t a[6], struct writes *w) { write_ids(a[0], a[2], a[3], a[2], w); }

void writes_clone3(const uint64_t a[6], struct writes *w) {
    uint64_t v[4]; /* flags, pidfd, child_tid, parent_tid */
    if (writes_read(w, v, a[0], sizeof v)) write_ids(v[0], v[1], v[2], v[3], w);
}

void writes_getxattrat(const uint64_t a[6], struct writes *w) {
    struct {
        uint64_t value;
        uint32_t size, flags;
    } args;
    if (writes_read(w, &args, a[4], sizeof args)) writes_range(w, args.value, result_or(w, args.size));
}
