#include "sphere/trace_table.h"

#include <linux/fcntl.h>
#include <linux/futex.h>
#include <linux/memfd.h>
#include <linux/mman.h>
#include <linux/time_types.h>

#include "inproc/fmt.h"
#include "inproc/layout.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "log/shared.h"
#include "sphere/channel.h"
#include "sphere/hurry.h"
#include "sphere/sys/special.h"

#define TABLE_OFFSET ((SHARED_OFFSET + sizeof(struct shared_tables) + 0xfffffull) & ~0xfffffull)
_Static_assert(TABLE_OFFSET + sizeof(struct trace_table) < SHARED_CONTENTS(0), "ends before contents");
_Static_assert(LAYOUT_SHARED + sizeof(struct shared_tables) <= LAYOUT_TRACES, "behind the tables of shared memory");
_Static_assert(LAYOUT_TRACES + sizeof(struct trace_table) <= LAYOUT_THREADS, "before the threads");

static struct trace_table *table;
static bool is_missing;

struct trace_table *trace_table_mapped(void) {
    return table;
}

static long map_at(int fd, uint64_t offset) {
    return SYS(mmap, LAYOUT_TRACES, sizeof *table, PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE, fd, offset);
}

/* Our descriptor is an O_PATH one, which the program can do nothing with, and neither can we. */
static long map_own(void) {
    char path[32];
    fmt_into(path, sizeof path, "/proc/self/fd/%d", fd_own() + 1);
    long fd = SYS(openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return fd;
    long got = map_at((int)fd, 0);
    SYS(close, fd);
    return got;
}

static bool in_channel, channel_has_none;

void trace_table_of_channel(bool has_one) {
    in_channel = true;
    channel_has_none = !has_one;
}

struct trace_table *trace_table(void) {
    if (likely(table) || is_missing) return table;
    long got = -ENOENT;
    if (the_channel) trace_table_of_channel(the_channel->shares);
    if (in_channel)
        got = channel_has_none ? -ENOENT : map_at(fd_own() + 1, TABLE_OFFSET);
    else if (the_runtime.own_fds > 1)
        got = map_own();
    if (got == (long)LAYOUT_TRACES)
        table = (struct trace_table *)got;
    else
        is_missing = true;
    return table;
}

#define RLIMIT_FSIZE_ 1

long trace_table_make(void) {
    char path[32];
    uint64_t limit[2];
    if (SYS(prlimit64, 0, RLIMIT_FSIZE_, 0, limit) != 0 || limit[0] < sizeof *table) return -EFBIG; /* else SIGXFSZ */
    long fd = SYS(memfd_create, "reprise-trace", MFD_CLOEXEC);
    if (fd < 0) return fd;
    fmt_into(path, sizeof path, "/proc/self/fd/%d", (int)fd);
    long own = SYS(ftruncate, fd, sizeof *table);
    if (own == 0) own = SYS(openat, AT_FDCWD, path, O_PATH);
    SYS(close, fd);
    return own;
}

/* ---- members ---- */

static int32_t *member_slot(int tgid, int want) {
    for (uint32_t k = 0; k < 64; k++) {
        int32_t *m = &table->members[((uint32_t)tgid * 2654435761u + k) % TRACE_MEMBERS];
        if (__atomic_load_n(m, __ATOMIC_RELAXED) == want) return m;
    }
    return NULL;
}

bool trace_is_member(int tgid) { return tgid > 0 && trace_table() && member_slot(tgid, tgid); }

void trace_add_member(int tgid) {
    if (!trace_table() || tgid <= 0 || member_slot(tgid, tgid)) return;
    for (;;) {
        int32_t none = 0, *m = member_slot(tgid, 0);
        if (!m || __atomic_compare_exchange_n(m, &none, tgid, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
    }
}

void trace_remove_member(int tgid) {
    int32_t *m = table ? member_slot(tgid, tgid) : NULL;
    if (m) __atomic_store_n(m, 0, __ATOMIC_RELEASE);
}

/* ---- tracees ---- */

static bool is_used(const struct tracee *e) {
    uint32_t state = __atomic_load_n(&e->state, __ATOMIC_ACQUIRE);
    return state != TRACEE_FREE && state != TRACEE_BUSY;
}

struct tracee *trace_find(int tid) {
    if (!table || !__atomic_load_n(&table->n_tracees, __ATOMIC_ACQUIRE)) return NULL;
    for (struct tracee *e = table->tracees; e < table->tracees + TRACE_TRACEES; e++)
        if (is_used(e) && e->tid == tid) return e;
    return NULL;
}

struct tracee *trace_next(uint32_t *i, int tracer) {
    if (!table || !__atomic_load_n(&table->n_tracees, __ATOMIC_ACQUIRE)) return NULL;
    while (*i < TRACE_TRACEES) {
        struct tracee *e = &table->tracees[(*i)++];
        if (is_used(e) && e->tracer == tracer && e->tid) return e;
    }
    return NULL;
}

struct tracee *trace_claim(int tid, int tgid, int tracer) {
    if (!trace_table() || trace_find(tid)) return NULL;
    for (struct tracee *e = table->tracees; e < table->tracees + TRACE_TRACEES; e++) {
        uint32_t none = TRACEE_FREE;
        if (!__atomic_compare_exchange_n(&e->state, &none, TRACEE_BUSY, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            continue;
        __atomic_add_fetch(&table->n_tracees, 1, __ATOMIC_ACQ_REL);
        e->tid = tid;
        e->tgid = tgid;
        e->tracer = tracer;
        e->wants = e->options = 0;
        e->visits = e->seized = e->reported = e->regs_changed = e->extended_changed = e->mask_changed = false;
        e->noticed = e->listens = e->was_interrupted = false;
        e->how = RESUME_CONT;
        e->signal = e->status = e->stop_code = e->stop_sender = e->born = 0;
        e->message = 0;
        memset(e->debug_regs, 0, sizeof e->debug_regs);
        e->letter.kind = LETTER_NONE;
        return e;
    }
    return NULL;
}

void trace_publish(struct tracee *e) { __atomic_store_n(&e->state, TRACEE_RUNS, __ATOMIC_SEQ_CST); }

void trace_free(struct tracee *e) {
    e->tid = 0;
    __atomic_store_n(&e->state, TRACEE_FREE, __ATOMIC_RELEASE);
    __atomic_sub_fetch(&table->n_tracees, 1, __ATOMIC_ACQ_REL);
}

/* ---- waking ---- */

void trace_kick(int tgid, int tid) {
    if (table) {
        uint32_t i = __atomic_fetch_add(&table->n_kicks, 1, __ATOMIC_RELAXED) % TRACE_KICKS;
        __atomic_store_n(&table->kicks[i], tid, __ATOMIC_RELEASE);
    }
    hurry_foreign(tgid, tid);
}

bool trace_was_kicked(int tid) {
    bool was = false;
    for (int32_t *k = table ? table->kicks : NULL; k && k < table->kicks + TRACE_KICKS; k++) {
        int32_t own = tid;
        was |= __atomic_compare_exchange_n(k, &own, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    }
    return was;
}

void trace_ring(int tracer) {
    for (struct trace_waiter *w = table->waiters; w < table->waiters + TRACE_WAITERS; w++) {
        int tid = __atomic_load_n(&w->tid, __ATOMIC_SEQ_CST);
        if (!tid || w->tgid != tracer) continue;
        __atomic_add_fetch(&w->bell, 1, __ATOMIC_SEQ_CST);
        trace_futex_wake(&w->bell);
        trace_kick(tracer, tid);
    }
}

void trace_futex_wait(uint32_t *word, uint32_t seen, long milliseconds) {
    struct __kernel_timespec timeout = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    SYS(futex, word, FUTEX_WAIT, seen, &timeout, 0, 0);
}

void trace_futex_wake(uint32_t *word) { SYS(futex, word, FUTEX_WAKE, INT32_MAX, 0, 0, 0); }
