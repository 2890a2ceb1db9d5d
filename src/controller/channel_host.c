/* The controller's side of the channel. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ckpt/area.h"
#include "controller/channel_host.h"
#include "controller/complain.h"

/* How many rings the resource limits leave room for. The controller needs most of its address space for other things. */
static uint32_t rings_within_limits(void) {
    struct rlimit size, space;
    getrlimit(RLIMIT_FSIZE, &size);
    getrlimit(RLIMIT_AS, &space);
    uint64_t bytes = size.rlim_cur < space.rlim_cur / 4 ? size.rlim_cur : space.rlim_cur / 4;
    uint64_t rings = bytes > sizeof(struct channel) ? (bytes - sizeof(struct channel)) / RING_BYTES : 0;
    return rings < CHANNEL_RINGS ? (uint32_t)rings : CHANNEL_RINGS;
}

struct channel *channel_make(int *out_fd, uint32_t flags) {
    uint32_t n = rings_within_limits();
    if (n < CHANNEL_RINGS_LEAST) {
        complain("the limits of file sizes (ulimit -f) and address space (ulimit -v) leave no room for shared memory");
        return NULL;
    }
    int fd = memfd_create("reprise-channel", MFD_CLOEXEC);
    uint64_t bytes = channel_ring_offset(n);
    bool shares = fd >= 0 && ftruncate(fd, (off_t)AREA_FILE_BYTES) == 0;
    if (fd >= 0 && (shares || ftruncate(fd, (off_t)bytes) == 0)) {
        void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
        if (p != MAP_FAILED) {
            struct channel *c = p;
            c->controller = (uint32_t)getpid();
            c->flags = flags;
            c->shares = shares;
            c->n_rings = n;
            c->magic = CHANNEL_MAGIC;
            *out_fd = fd;
            return c;
        }
    }
    complain("cannot make shared memory: %s", strerror(errno));
    if (fd >= 0) close(fd);
    return NULL;
}

/* Each claim begins below `next` and goes past rings in use only, which are below `high`. */
static void count_claims(struct ring_claims *c, uint32_t next) {
    uint64_t high = (uint64_t)(next > c->high ? next : c->high) + (next - c->known);
    c->high = high < CHANNEL_RINGS ? (uint32_t)high : CHANNEL_RINGS;
}

uint32_t claims_reach(struct ring_claims *c, struct channel *channel) {
    uint32_t next = CHANNEL_GET(channel->next_ring);
    count_claims(c, next);
    c->known = next;
    return c->high;
}

void claims_begin_at(struct ring_claims *c, struct channel *channel, uint32_t i) {
    count_claims(c, __atomic_exchange_n(&channel->next_ring, i, __ATOMIC_ACQ_REL));
    c->known = i;
}

void futex_wake_all(uint32_t *futex) {
    int saved = errno;
    syscall(SYS_futex, futex, FUTEX_WAKE, 0x7fffffff, NULL, NULL, 0);
    errno = saved;
}

void futex_wait_us(uint32_t *futex, uint32_t seen, unsigned us) {
    struct timespec t = {us / 1000000, (long)(us % 1000000) * 1000};
    syscall(SYS_futex, futex, FUTEX_WAIT, seen, &t, NULL, 0);
}

void futex_ring(uint32_t *futex) {
    __atomic_add_fetch(futex, 1, __ATOMIC_SEQ_CST);
    futex_wake_all(futex);
}

void ring_reset(struct ring *r, uint64_t stream, enum ring_state state) {
    r->pid = 0;
    r->stream = stream;
    CHANNEL_SET(r->head, 0);
    CHANNEL_SET(r->tail, 0);
    r->writer_waits = r->reader_waits = 0;
    r->ended = RING_NOT_ENDED;
    r->status = 0;
    CHANNEL_SET(r->state, state);
}

uint64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* File size: the log and the shared memory. Address space: the channel. Descriptors: one for each process of the sphere. */
static const int raised[] = {RLIMIT_FSIZE, RLIMIT_AS, RLIMIT_NOFILE};
#define RAISED (sizeof raised / sizeof *raised)
static struct rlimit before[RAISED];
static struct sigaction too_large_before; /* SIGXFSZ: errors are to be errors */

void limits_raise(void) {
    sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = SIG_IGN}, &too_large_before);
    for (unsigned i = 0; i < RAISED; i++) {
        getrlimit(raised[i], &before[i]);
        rlim_t most = raised[i] == RLIMIT_NOFILE ? 65536 : RLIM_INFINITY, hard = before[i].rlim_max;
        if (before[i].rlim_cur >= most) continue;
        if (hard < most && setrlimit(raised[i], &(struct rlimit){most, most}) == 0) continue; /* with privilege */
        setrlimit(raised[i], &(struct rlimit){hard < most ? hard : most, hard});
    }
}

void limits_restore(void) {
    sigaction(SIGXFSZ, &too_large_before, NULL);
    for (unsigned i = 0; i < RAISED; i++) setrlimit(raised[i], &before[i]);
}

#define FD_TABLE_MODEST 4096 /* a table for higher numbers costs memory, and time at each fork */

int inherit_high(int fd) {
    const int limit = (int)(before[2].rlim_cur < FD_TABLE_MODEST ? before[2].rlim_cur : 900);
    const int places[] = {limit, 900, 200, 50, 10, 3};
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
        int high = fcntl(fd, F_DUPFD, places[i]);
        if (high >= 0) return high;
    }
    return -1;
}
