#include "sphere/sys/shared_inputs.h"

#include <linux/futex.h>
#include <linux/mman.h>

#include "inproc/arena.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/frozen.h"
#include "sphere/shared.h"
#include "sphere/shared_values.h"
#include "sphere/sys/model.h"

/* ---- copies ---- */

struct bounce {
    struct bounce *next;
    bool in_use;
    size_t size, used;
    uint8_t *bytes;
};

static struct bounce *bounces; /* whoever has the turn */

#define BOUNCE_LEAST (64ul << 10)
#define BOUNCE_MOST (256ul << 20)

static struct bounce *bounce_get(size_t needed) {
    if (needed > BOUNCE_MOST) return NULL;
    for (struct bounce *b = bounces; b; b = b->next)
        if (!b->in_use && b->size >= needed) {
            b->in_use = true;
            b->used = 0;
            return b;
        }
    struct bounce *b = arena_alloc(sizeof *b);
    b->size = BOUNCE_LEAST;
    while (b->size < needed) b->size *= 2;
    b->bytes = arena_try_pages(b->size);
    if (!b->bytes) return NULL;
    b->in_use = true;
    b->next = bounces;
    return bounces = b;
}

static uint64_t copy_in(struct bounce *b, gaddr from, size_t len) {
    uint8_t *to = b->bytes + b->used;
    if (!guest_read(to, from, len)) return from; /* the kernel shall find out by itself */
    b->used += (len + 63) & ~63ul;
    return (uint64_t)to;
}

/* ---- calls that send data ---- */

enum data_kind { NO_DATA, ONE_BUFFER, VECTOR, MESSAGE };

static enum data_kind data_of(uint64_t nr) {
    switch (nr) {
    case __NR_write:
    case __NR_pwrite64:
    case __NR_sendto: return ONE_BUFFER;
    case __NR_writev:
    case __NR_pwritev:
    case __NR_pwritev2: return VECTOR;
    case __NR_sendmsg: return MESSAGE;
    default: return NO_DATA;
    }
}

static bool is_tracked(gaddr start, uint64_t len) {
    struct mapping m;
    len = MIN(len, BOUNCE_MOST);
    if (!shared_may_be(start, len)) return false;
    for (gaddr at = start, end = start + len; at < end; at = m.end) {
        if (!aspace_find(at, &m)) return false;
        if (m.tracked || m.borrowed) return true;
    }
    return false;
}

static struct bounce *copy_vector(uint64_t *v, uint64_t n) {
    struct iovec_raw piece;
    uint64_t total = 0;
    bool tracked = is_tracked(*v, n * sizeof piece);
    if (n > IOV_MOST) return NULL;
    for (uint64_t i = 0; i < n; i++) {
        if (!guest_read(&piece, *v + i * sizeof piece, sizeof piece)) return NULL;
        total += (MIN(piece.len, BOUNCE_MOST) + 63) & ~63ul;
        tracked |= is_tracked(piece.base, piece.len);
    }
    struct bounce *b = tracked ? bounce_get(total + n * sizeof piece + 64) : NULL;
    if (!b) return NULL;
    struct iovec_raw *copy = (struct iovec_raw *)copy_in(b, *v, n * sizeof piece);
    if ((uint64_t)copy == *v) return b;
    for (uint64_t i = 0; i < n; i++) copy[i].base = copy_in(b, copy[i].base, copy[i].len);
    *v = (uint64_t)copy;
    return b;
}

static struct bounce *copy_message(uint64_t *p) {
    static struct msghdr_raw heads[64]; /* one for each that may be under way */
    static uint32_t next;
    struct msghdr_raw *h = &heads[next++ % ARRAY_LEN(heads)];
    if (!guest_read(h, *p, sizeof *h)) return NULL;
    struct bounce *b = copy_vector(&h->iov, h->iov_len);
    if (b) *p = (uint64_t)h;
    return b;
}

static struct bounce *copy_data(uint64_t nr, uint64_t a[6]) {
    struct bounce *b = NULL;
    switch (data_of(nr)) {
    case NO_DATA: break;
    case ONE_BUFFER:
        b = is_tracked(a[1], a[2]) ? bounce_get(a[2]) : NULL;
        if (b) a[1] = copy_in(b, a[1], a[2]);
        break;
    case VECTOR: b = copy_vector(&a[1], a[2]); break;
    case MESSAGE: b = copy_message(&a[1]); break;
    }
    return b;
}

/* ---- other arguments ---- */

#define STRUCTURE 256 /* bytes that most arguments point to, at most; strings end before that, mostly */

/* Visits what the arguments point to, as far as it can be told. */
static void each_argument(uint64_t nr, const uint64_t a[6], bool far, void (*visit)(gaddr, size_t)) {
    for (int i = 0; i < 6; i++) {
        struct mapping m;
        if (!shared_may_be(a[i], 1) || !aspace_find(a[i], &m) || !(m.tracked || m.borrowed)) continue;
        size_t len = far ? PAGE_SIZE : STRUCTURE;
        if (i == 1 && data_of(nr) == ONE_BUFFER) len = a[2];
        visit(a[i], MIN(len, m.end - a[i]));
    }
    struct iovec_raw piece;
    if (data_of(nr) == VECTOR)
        for (uint64_t i = 0; i < MIN(a[2], IOV_MOST) && guest_read(&piece, a[1] + i * sizeof piece, sizeof piece); i++)
            visit(piece.base, piece.len);
}

static void hold_range(struct writes *w, gaddr start, size_t len) { shared_hold(start, len); }
static void hold_anywhere(struct writes *w) {}

#define POPULATE_MOST (64ull << 20) /* bytes */

/* Whether the call touches all of the memory that it names, which fails where that is closed, or changes what is in it. */
static bool populates(uint64_t nr, const uint64_t a[6]) {
    bool is_whole =
        nr == __NR_mlock || (nr == __NR_mlock2 && !a[2]) ||
        (nr == __NR_madvise && (a[2] == MADV_POPULATE_READ || a[2] == MADV_POPULATE_WRITE || a[2] == MADV_REMOVE));
    return is_whole && a[1] <= POPULATE_MOST;
}

static void hold(uint64_t nr, const uint64_t a[6], bool far, bool outputs) {
    each_argument(nr, a, far, shared_hold);
    if (populates(nr, a)) shared_hold(a[0], a[1]);
    struct writes w = {.range = hold_range, .anywhere = hold_anywhere};
    if (outputs) model_writes(nr, a, &w);
}

/* Until one pass finds all of it ours: what comes later may cost what came before. */
static void hold_all(uint64_t nr, const uint64_t a[6], bool far, bool outputs) {
    uint64_t before;
    do {
        before = shared_acquired;
        hold(nr, a, far, outputs);
    } while (before != shared_acquired);
}

void shared_hold_arguments(uint64_t nr, const uint64_t a[6]) { hold_all(nr, a, false, true); }

struct found {
    struct writes w;
    bool is_shared;
};

static void find_range(struct writes *w, gaddr start, size_t len) {
    if (shared_may_be(start, len)) ((struct found *)w)->is_shared = true;
}
static void find_anywhere(struct writes *w) { ((struct found *)w)->is_shared = true; }

bool shared_may_be_written(uint64_t nr, const uint64_t a[6]) {
    struct found f = {.w = {.range = find_range, .anywhere = find_anywhere}};
    model_writes(nr, a, &f.w);
    return f.is_shared;
}

void shared_hold_written(uint64_t nr, const uint64_t a[6], long ret) {
    struct writes w = {.range = hold_range, .anywhere = hold_anywhere, .is_done = true, .ret = ret};
    uint64_t before;
    do {
        before = shared_acquired;
        model_writes(nr, a, &w);
    } while (before != shared_acquired);
}

/* Calls that have to do with mappings rather than with what is in them. The kernel has to find the file there, no copy. */
static bool is_about_mappings(uint64_t nr) {
    return nr == __NR_mmap || nr == __NR_munmap || nr == __NR_mprotect || nr == __NR_pkey_mprotect ||
           nr == __NR_mremap || nr == __NR_madvise || nr == __NR_remap_file_pages || nr == __NR_shmat ||
           nr == __NR_shmdt;
}

static void before_mappings_change(uint64_t nr, const uint64_t a[6]) {
    shared_return_to_outsiders(thread_self(), EVF_AT_GATE);
    bool is_protection = nr == __NR_mprotect || nr == __NR_pkey_mprotect;
    if (is_protection && (a[2] & PROT_WRITE)) shared_becomes_writable(PAGE_DOWN(a[0]), PAGE_UP(a[0] + a[1]));
}

/* Waiting and waking needs no page: what the kernel finds in the word shows in nothing but the call's result. Words of one process
 * are known by their address. */
static bool is_about_word(uint64_t nr, const uint64_t a[6]) {
    int op = (int)a[1] & FUTEX_CMD_MASK;
    if (nr != __NR_futex || (a[1] & FUTEX_PRIVATE_FLAG)) return false;
    return op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET || op == FUTEX_WAKE || op == FUTEX_WAKE_BITSET;
}

void shared_inputs_begin(struct shared_inputs *in, uint64_t nr, uint64_t a[6], bool may_wait) {
    memcpy(in->a, a, sizeof in->a);
    in->bounce = may_wait ? copy_data(nr, a) : NULL;
    if (is_about_word(nr, a)) a[0] = values_word(a[0]);
    if (is_about_mappings(nr) && !populates(nr, a))
        before_mappings_change(nr, a);
    else
        hold_all(nr, a, false, !may_wait || nr == __NR_futex);
    if (nr == __NR_futex && unlikely(frozen_any)) frozen_end_all(); /* it is the file's page that others wake */
    in->acquired = shared_acquired;
}

bool shared_inputs_end(struct shared_inputs *in, uint64_t nr, uint64_t a[6], long ret) {
    if (in->bounce) in->bounce->in_use = false;
    memcpy(a, in->a, sizeof in->a);
    if (ret != -EFAULT) return false;
    hold_all(nr, a, true, true);
    return in->acquired != shared_acquired; /* by us now, or by another thread before we came back */
}

/* ---- robust mutexes ---- */

bool shared_is_robust_wait(uint64_t nr, const uint64_t a[6]) {
    int op = (int)a[1] & FUTEX_CMD_MASK;
    if (nr != __NR_futex || a[3] || (op != FUTEX_WAIT && op != FUTEX_WAIT_BITSET)) return false;
    return (a[2] & FUTEX_WAITERS) && (a[2] & FUTEX_TID_MASK) && is_tracked(a[0], 4);
}

void shared_pause_futex(struct shared_pause *p, const uint64_t a[6], uint64_t b[6]) {
    memcpy(b, a, 6 * sizeof *b);
    p->time[0] = p->time[1] = 0;
    if ((a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET)
        SYS(clock_gettime, 1 /* CLOCK_MONOTONIC */, p->time); /* absolute */
    p->time[1] += 100000000;
    if (p->time[1] >= 1000000000) p->time[0]++, p->time[1] -= 1000000000;
    b[1] &= ~(uint64_t)FUTEX_CLOCK_REALTIME;
    b[3] = (uint64_t)p->time;
}
