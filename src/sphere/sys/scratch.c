#include "sphere/sys/scratch.h"

#include <linux/mman.h>
#include <linux/poll.h>

#include "inproc/arena.h"
#include "inproc/layout.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/code_watch.h"
#include "sphere/sys/model.h"

/* Scratch memory of a thread: the end of its slot, but for a page that stays unmapped. */
#define AREA_AT 0xb0000
#define AREA_SIZE 0x4f000
#define AREA_INLINE 0x3e000 /* bytes for copies */
#define PIECES_MAX 2600
#define SLOTS_MAX ((LAYOUT_THREADS_END - LAYOUT_THREADS) / LAYOUT_THREAD_SLOT)

/* More than AREA_INLINE comes from the arena, in powers of two. The thread keeps the addresses, which the arena could not use
 * again, but only the first BIG_KEPT bytes of memory. */
#define BIG_LEAST (512ull << 10)
#define BIG_KEPT (1ull << 20)
#define BIG_MOST (2ull << 30)
#define BIG_TOTAL (8ull << 30) /* of all threads, ever */

#define ADDRESS_MOST 128 /* struct sockaddr_storage: no address is longer, whatever room the program says it has */

struct piece { /* a copy of program memory; in ascending order of `copy` */
    gaddr program;
    uint64_t copy;
    size_t len;
};

struct scratch_area {
    uint8_t *big; /* kept from call to call */
    size_t big_size;
    /* the call under way */
    uint8_t *base;
    size_t size, used; /* used may grow beyond size: that much would be needed */
    bool refused;
    uint32_t n_pieces;
    struct piece piece[PIECES_MAX];
    uint8_t inline_copies[AREA_INLINE] __attribute__((aligned(PAGE_SIZE)));
};
_Static_assert(sizeof(struct scratch_area) <= AREA_SIZE, "fits a slot");

static uint64_t area_mapped[(SLOTS_MAX + 63) / 64]; /* by slot */
static uint64_t big_spent;

/* The calling thread's area, mapped when it is first needed; NULL: no memory. */
static struct scratch_area *area_of(struct tblock *t) {
    uint64_t slot = ((uint64_t)t - LAYOUT_THREADS) / LAYOUT_THREAD_SLOT, bit = 1ull << (slot % 64);
    uint64_t at = LAYOUT_THREADS + slot * LAYOUT_THREAD_SLOT + AREA_AT;
    if (unlikely(!(__atomic_load_n(&area_mapped[slot / 64], __ATOMIC_RELAXED) & bit))) {
        long got = SYS(mmap, at, AREA_SIZE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0);
        if (got != (long)at) return NULL;
        __atomic_fetch_or(&area_mapped[slot / 64], bit, __ATOMIC_RELAXED);
    }
    return (struct scratch_area *)at;
}

static bool grow(struct scratch_area *s, size_t needed) {
    size_t size = BIG_LEAST;
    while (size < needed) size *= 2;
    if (s->big_size >= needed) return true;
    if (size > BIG_MOST || __atomic_add_fetch(&big_spent, size, __ATOMIC_RELAXED) > BIG_TOTAL) return false;
    uint8_t *p = arena_try_pages(size);
    if (!p) return false;
    if (s->big) arena_free_pages(s->big, s->big_size);
    s->big = p;
    s->big_size = size;
    return true;
}

/* ---- before the call ---- */

static bool is_writable(gaddr start, uint64_t len) {
    struct mapping m;
    gaddr end = start + len;
    if (end < start) return false;
    for (gaddr at = start; at < end; at = m.end)
        if (!aspace_find(at, &m) || m.runtime || !(m.prot & PROT_WRITE)) return false;
    return true;
}

/* Room for a copy of what is at `like`; direct input wants large buffers aligned as the program had them. */
static uint8_t *take(struct scratch_area *s, gaddr like, uint64_t len) {
    uint64_t at = (s->used + 15) & ~15ull;
    if (len >= 512) at += (like - at) & (PAGE_SIZE - 1);
    s->used = at + len;
    return s->used <= s->size ? s->base + at : NULL;
}

enum copy_in { WRITTEN_ONLY, READ_TOO };

/* Where the kernel shall write instead of [from, from + len). */
static uint64_t replace(struct scratch_area *s, gaddr from, uint64_t len, enum copy_in in) {
    if (!from || !len || s->refused) return from;
    if (len > BIG_MOST || s->used > BIG_MOST || s->n_pieces == PIECES_MAX || !is_writable(from, len)) {
        s->refused = true;
        return from;
    }
    uint8_t *copy = take(s, from, len);
    if (!copy) return from;
    if (in == READ_TOO && !guest_read(copy, from, len)) s->refused = true;
    s->piece[s->n_pieces++] = (struct piece){from, (uint64_t)copy, len};
    return (uint64_t)copy;
}

static uint64_t replace_iovecs(struct scratch_area *s, gaddr v, uint64_t n) {
    if (!v || !n || n > IOV_MOST) return v; /* the kernel will not look, either */
    struct iovec_raw *copy = (struct iovec_raw *)take(s, 0, n * sizeof *copy);
    for (uint64_t i = 0; i < n && !s->refused; i++) {
        struct iovec_raw one;
        if (!guest_read(&one, v + i * sizeof one, sizeof one)) {
            s->refused = true;
            break;
        }
        one.base = replace(s, one.base, one.len, WRITTEN_ONLY);
        if (copy) copy[i] = one;
    }
    return copy ? (uint64_t)copy : v;
}

/* The fields of a message head that lead to more memory. */
static void replace_message(struct scratch_area *s, struct msghdr_raw *h) {
    if ((int32_t)h->name_len > 0) h->name = replace(s, h->name, MIN(h->name_len, ADDRESS_MOST), READ_TOO);
    h->control = replace(s, h->control, h->control_len, READ_TOO);
    h->iov = replace_iovecs(s, h->iov, h->iov_len);
}

static uint64_t replace_messages(struct scratch_area *s, gaddr v, uint64_t n, size_t stride) {
    uint64_t copy = replace(s, v, n * stride, READ_TOO);
    for (uint64_t i = 0; i < n && !s->refused; i++) {
        struct msghdr_raw h;
        if (!guest_read(&h, v + i * stride, sizeof h)) {
            s->refused = true;
            break;
        }
        replace_message(s, &h);
        if (copy != v) *(struct msghdr_raw *)(copy + i * stride) = h;
    }
    return copy;
}

static void replace_value_result(struct scratch_area *s, uint64_t *p, uint64_t *len_at) {
    uint32_t len;
    if (!*p || !*len_at) return;
    if (!guest_read(&len, *len_at, sizeof len)) {
        s->refused = true;
        return;
    }
    if ((int32_t)len > 0) *p = replace(s, *p, MIN(len, ADDRESS_MOST), READ_TOO);
    *len_at = replace(s, *len_at, sizeof len, READ_TOO);
}

/* Irregular calls: every range that they may write starts at an argument. */
struct irregular {
    struct writes w;
    struct scratch_area *s;
    const uint64_t *program;
    uint64_t *a;
};

static uint64_t room_at(const struct scratch_area *s, uint64_t copy) {
    for (uint32_t n = 0; n < s->n_pieces; n++)
        if (s->piece[n].copy == copy) return s->piece[n].len;
    return 0;
}

/* All arguments that lead there: who sleeps may want the rest where the time was. */
static void irregular_range(struct writes *w, gaddr start, size_t len) {
    struct irregular *i = (struct irregular *)w;
    uint64_t copy = 0;
    bool found = false;
    for (int n = 1; n < 6; n++) {
        if (i->program[n] != start) continue;
        found = true;
        if (room_at(i->s, i->a[n]) >= len) continue;
        if (!copy) copy = replace(i->s, start, len, READ_TOO);
        i->a[n] = copy;
    }
    if (!found) i->s->refused = true;
}

static void irregular_anywhere(struct writes *w) { ((struct irregular *)w)->s->refused = true; }

static void replace_irregular(struct scratch_area *s, uint64_t nr, const uint64_t program[6], uint64_t a[6]) {
    struct irregular i = {
        .w = {.range = irregular_range, .anywhere = irregular_anywhere}, .s = s, .program = program, .a = a};
    model_writes(nr, program, &i.w);
}

static void replace_out(struct scratch_area *s, const struct out *o, uint64_t a[6]) {
    uint64_t *p = &a[o->ptr], n = a[o->count], bytes;
    if (o->size > 1 && o->kind != OUT_OBJECT) n = (uint32_t)n; /* numbers of objects are ints */
    if (__builtin_mul_overflow(n, (uint64_t)o->size, &bytes)) bytes = UINT64_MAX;
    switch ((enum out_kind)o->kind) {
    case OUT_END: break;
    case OUT_OBJECT: *p = replace(s, *p, o->size, READ_TOO); break;
    case OUT_COUNTED: *p = replace(s, *p, bytes, READ_TOO); break;
    case OUT_AT_MOST: *p = replace(s, *p, bytes, WRITTEN_ONLY); break;
    case OUT_BITSET: *p = replace(s, *p, ((uint32_t)n + 63ull) / 64 * 8, READ_TOO); break;
    case OUT_VALUE_RESULT: replace_value_result(s, p, &a[o->count]); break;
    case OUT_IOVEC: *p = replace_iovecs(s, *p, n); break;
    case OUT_MSG: *p = replace_messages(s, *p, 1, sizeof(struct msghdr_raw)); break;
    case OUT_MSGS: *p = replace_messages(s, *p, MIN((uint32_t)n, IOV_MOST), sizeof(struct mmsghdr_raw)); break;
    case OUT_IRREGULAR: break; /* replace_irregular */
    case OUT_UNKNOWN: s->refused = true; break;
    }
}

/* Whether everything found room and was writable. */
static bool replace_all(struct scratch_area *s, uint8_t *base, size_t size, uint64_t nr, const uint64_t program[6],
                        uint64_t a[6]) {
    s->base = base;
    s->size = size;
    s->used = 0;
    s->n_pieces = 0;
    s->refused = false;
    for (int i = 0; i < 6; i++) a[i] = program[i];
    const struct call_row *row = &model_rows[nr];
    bool irregular = false;
    for (int i = 0; i < MODEL_OUTS && row->out[i].kind; i++) {
        replace_out(s, &row->out[i], a);
        irregular |= row->out[i].kind == OUT_IRREGULAR;
    }
    if (irregular) replace_irregular(s, nr, program, a);
    return !s->refused && s->used <= s->size;
}

/* Outputs that must stay where they are. */
static bool is_bound(uint64_t nr) {
    switch (nr) {
    case __NR_futex: /* the words themselves are waited on */
    case __NR_futex_waitv:
    case 455 /* futex_wait */:
    case __NR_vmsplice: /* may as well be inputs */ return true;
    default: return false;
    }
}

bool scratch_begin(struct scratch *s, struct tblock *t, uint64_t nr, uint64_t a[6]) {
    if (nr >= MODEL_CALLS || !(model_rows[nr].flags & CALL_BLOCKS) || !model_rows[nr].out[0].kind || is_bound(nr))
        return false;
    struct scratch_area *area = area_of(t);
    if (!area) return false;
    memcpy(s->program, a, sizeof s->program);
    bool ok = replace_all(area, area->inline_copies, AREA_INLINE, nr, s->program, s->replaced);
    if (!ok && !area->refused)
        ok = grow(area, area->used) && replace_all(area, area->big, area->big_size, nr, s->program, s->replaced);
    if (!ok || !area->n_pieces) return false;
    s->area = area;
    memcpy(a, s->replaced, sizeof s->replaced);
    return true;
}

/* ---- after the call ---- */

struct copy_back {
    struct writes w;
    const struct scratch_area *s;
    const uint64_t *a; /* as issued */
    uint64_t nr;
    bool failed;
};

static const struct piece *piece_at(const struct scratch_area *s, uint64_t copy) {
    uint32_t lo = 0, hi = s->n_pieces; /* the last that starts at or below */
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (s->piece[mid].copy <= copy)
            lo = mid + 1;
        else
            hi = mid;
    }
    const struct piece *p = lo ? &s->piece[lo - 1] : NULL;
    return p && copy - p->copy < p->len ? p : NULL;
}

static void give(struct copy_back *c, gaddr to, uint64_t from, size_t len) {
    code_watch_before_kernel_write(to, len);
    if (!guest_write(to, (const void *)from, len)) c->failed = true;
}

/* One field of each object: the kernel leaves the others alone, and the program may have changed them. */
static void give_field(struct copy_back *c, gaddr to, uint64_t from, size_t len, size_t stride, size_t at,
                       size_t size) {
    for (size_t i = 0; i + stride <= len; i += stride) give(c, to + i + at, from + i + at, size);
}

static void copy_range(struct writes *w, gaddr start, size_t len) {
    struct copy_back *c = (struct copy_back *)w;
    const struct piece *p = piece_at(c->s, start);
    if (!p) return; /* was not replaced */
    uint64_t skip = start - p->copy;
    gaddr to = p->program + skip;
    len = MIN(len, p->len - skip);
    if ((c->nr == __NR_poll || c->nr == __NR_ppoll) && start == c->a[0])
        give_field(c, to, start, len, sizeof(struct pollfd), offsetof(struct pollfd, revents), 2);
    else if (c->nr == __NR_sendmmsg)
        give_field(c, to, start, len, sizeof(struct mmsghdr_raw), offsetof(struct mmsghdr_raw, len), 4);
    else
        give(c, to, start, len);
}

static void copy_anywhere(struct writes *w) {}

long scratch_end(struct scratch *s, struct tblock *t, uint64_t nr, uint64_t a[6], long ret) {
    struct scratch_area *area = s->area;
    memcpy(a, s->program, sizeof s->program);
    struct copy_back c = {.w = {.range = copy_range, .anywhere = copy_anywhere, .is_done = true, .ret = ret},
                          .s = area,
                          .a = s->replaced,
                          .nr = nr};
    /* EFAULT can only be about what the call reads */
    if (ret != GATE_ABORTED && ret != -EFAULT) model_writes(nr, s->replaced, &c.w);
    if (area->base == area->big && area->used > BIG_KEPT)
        SYS(madvise, area->big + BIG_KEPT, area->used - BIG_KEPT, MADV_DONTNEED);
    return c.failed ? -EFAULT : ret;
}
