#include "sphere/record_parts.h"

#include <asm/stat.h>
#include <linux/stat.h>

#include "engine/cache.h"
#include "inproc/fmt.h"
#include "inproc/sys.h"
#include "sphere/sys/model.h"
#include "sphere/sys/special.h"

static void note_anywhere(struct writes *w) { w->is_done = true; }
static void note_range(struct writes *w, gaddr start, size_t len) {}

static bool writes_anywhere(uint64_t nr, const uint64_t a[6]) {
    struct writes w = {.range = note_range, .anywhere = note_anywhere};
    model_writes(nr, a, &w);
    return w.is_done;
}

/* Says so once for each call (and request). */
static void say_refused(uint64_t nr, uint64_t request) {
    static uint64_t said[64];
    static size_t n;
    uint64_t key = nr << 40 | (request & 0xffffffffffull);
    for (size_t i = 0; i < n; i++)
        if (said[i] == key) return;
    if (n < ARRAY_LEN(said)) said[n++] = key;
    const char *name = nr < MODEL_CALLS && model_rows[nr].name[0] ? model_rows[nr].name : "unknown call";
    if (nr == __NR_ioctl)
        say("ioctl request 0x%lx is not in the model: refused while recording", request);
    else
        say("%s (%lu) cannot be recorded: refused", name, nr);
}

/* Our channel and socket are open files; the program shall not find them. (Its own file is an O_PATH descriptor.) */
static bool takes_descriptor(uint64_t nr) {
    switch (nr) {
    case __NR_read:
    case __NR_write:
    case __NR_lseek:
    case __NR_ioctl:
    case __NR_pread64:
    case __NR_pwrite64:
    case __NR_readv:
    case __NR_writev:
    case __NR_preadv:
    case __NR_pwritev:
    case __NR_preadv2:
    case __NR_pwritev2:
    case __NR_sendfile:
    case __NR_connect:
    case __NR_accept:
    case __NR_accept4:
    case __NR_sendto:
    case __NR_recvfrom:
    case __NR_sendmsg:
    case __NR_recvmsg:
    case __NR_sendmmsg:
    case __NR_recvmmsg:
    case __NR_shutdown:
    case __NR_getsockname:
    case __NR_getpeername:
    case __NR_setsockopt:
    case __NR_getsockopt:
    case __NR_flock:
    case __NR_fsync:
    case __NR_fdatasync:
    case __NR_ftruncate:
    case __NR_fchmod:
    case __NR_fchown:
    case __NR_fallocate:
    case __NR_fadvise64:
    case __NR_readahead:
    case __NR_splice:
    case __NR_tee:
    case __NR_copy_file_range: return true;
    default: return false;
    }
}

/* No device and no socket: there is nothing that would know an odd request. */
static bool is_plain_file(int fd) {
    struct stat st;
    if (SYS(fstat, fd, &st) != 0) return false;
    return (st.st_mode & S_IFMT) == S_IFREG || (st.st_mode & S_IFMT) == S_IFDIR || (st.st_mode & S_IFMT) == S_IFIFO;
}

/* What the kernel would say, too, to a request that it does not know. */
static long unknown_request(uint64_t nr, const uint64_t a[6]) {
    switch (nr) {
    case __NR_ioctl:
        if (SYS(fcntl, a[0], 1 /* F_GETFD */) == -EBADF) return -EBADF;
        if (!is_plain_file((int)a[0])) say_refused(nr, a[1]);
        return a[1] == 0x8946 /* SIOCETHTOOL */ ? -EOPNOTSUPP : -ENOTTY;
    case __NR_fcntl: return SYS(fcntl, a[0], 1 /* F_GETFD */) == -EBADF ? -EBADF : -EINVAL;
    case __NR_prctl: return -EINVAL;
    case __NR_keyctl: return -EOPNOTSUPP;
    default: say_refused(nr, 0); return -ENOSYS;
    }
}

/* Memory that the kernel fills, or takes packets from, whenever it likes. (PACKET_RX_RING: packet_ring.h) Programs that can do without it get the answer of a kernel that
 * has none. */
static bool is_kernels_ring(const uint64_t a[6]) {
    enum { SOL_PACKET_ = 263, TX_RING = 13, SOL_XDP_ = 283, XDP_FIRST_RING = 2, XDP_LAST_RING = 6 };
    if ((uint32_t)a[1] == SOL_PACKET_) return (uint32_t)a[2] == TX_RING;
    return (uint32_t)a[1] == SOL_XDP_ && (uint32_t)a[2] >= XDP_FIRST_RING && (uint32_t)a[2] <= XDP_LAST_RING;
}

static long refuse_ring(int fd) {
    static bool said;
    if (SYS(fcntl, fd, 1 /* F_GETFD */) == -EBADF) return -EBADF;
    if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
        say("rings of packets to be sent (PACKET_TX_RING) and those of AF_XDP cannot be recorded: refused");
    return -ENOPROTOOPT;
}

long record_refusal(uint64_t nr, const uint64_t a[6]) {
    if (nr == __NR_rseq || nr == __NR_restart_syscall) return nr == __NR_rseq ? -ENOSYS : -EINTR;
    if (unlikely(fd_is_own(a[0])) && takes_descriptor(nr)) return -EBADF;
    if (nr == __NR_epoll_ctl && fd_is_own(a[2])) return -EBADF;
    if (nr >= MODEL_CALLS || model_rows[nr].does == DOES_REFUSE || model_rows[nr].does == DOES_UNKNOWN) return -ENOSYS;
    if (nr == __NR_setsockopt && is_kernels_ring(a)) return refuse_ring((int)a[0]);
    return writes_anywhere(nr, a) ? unknown_request(nr, a) : 0;
}
