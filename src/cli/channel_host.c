/* The controller's side of the channel. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cli/channel_host.h"
#include "cli/cli.h"

struct channel *channel_make(int *out_fd, uint32_t flags) {
    int fd = memfd_create("reprise-channel", MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, CHANNEL_BYTES) == 0) {
        void *p = mmap(NULL, CHANNEL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
        if (p != MAP_FAILED) {
            struct channel *c = p;
            c->controller = (uint32_t)getpid();
            c->flags = flags;
            c->magic = CHANNEL_MAGIC;
            *out_fd = fd;
            return c;
        }
    }
    complain("cannot make shared memory: %s", strerror(errno));
    if (fd >= 0) close(fd);
    return NULL;
}

uint32_t channel_reach(struct channel *c, uint32_t *high, uint32_t wanted) {
    uint32_t next = CHANNEL_GET(c->next_ring); /* counted up with each claim; we alone set it back */
    if (next < CHANNEL_RINGS && next + 16 > *high) *high = next + 16;
    if (next >= CHANNEL_RINGS || *high > CHANNEL_RINGS) *high = CHANNEL_RINGS;
    return wanted < *high ? wanted : *high;
}

void futex_wake_all(uint32_t *futex) {
    int saved = errno;
    syscall(SYS_futex, futex, FUTEX_WAKE, 0x7fffffff, NULL, NULL, 0);
    errno = saved;
}

void futex_wait_ms(uint32_t *futex, uint32_t seen, unsigned ms) {
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
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

void limits_raise(void) {
    for (unsigned i = 0; i < RAISED; i++) {
        getrlimit(raised[i], &before[i]);
        struct rlimit more = {before[i].rlim_max, before[i].rlim_max};
        if (raised[i] == RLIMIT_NOFILE && more.rlim_cur > 65536) more.rlim_cur = 65536;
        if (more.rlim_cur > before[i].rlim_cur) setrlimit(raised[i], &more);
    }
}

void limits_restore(void) {
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
