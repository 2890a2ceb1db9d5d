#include "sphere/shared_values.h"

#include <linux/mman.h>
#include <linux/time_types.h>

#include "engine/cache.h"
#include "engine/engine.h"
#include "inproc/arena.h"
#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "log/events.h"
#include "sphere/channel.h"
#include "sphere/debug.h"
#include "sphere/event_log.h"
#include "sphere/gate.h"
#include "sphere/mode.h"
#include "sphere/operand.h"
#include "sphere/shared_left.h"

#define HOT 12                     /* so many changes of hands in a row ... */
#define HOT_WITHIN_NS 1000000000ul /* ... each within this time of the one before */
#define SPINS 256                  /* accesses in a row after which others may run */
#define ALONE 400                  /* accesses of one process in a row: nobody else wants the page any more */
/* It was not worth it for a page that was needed as a whole after a few accesses, or in which processes made many in a row, on
 * average, so that handing it over is cheaper. Such a page is looked at again after 8 changes of hands, then 16 ... */
#define FEW 16
#define MANY 64
#define COLD_LEAST 8
#define COLD_MOST 4096

/* ---- instructions ---- */

/* It may fault, and the fault would be ours. */
static bool is_division(const struct insn *in) {
    bool escaped = in->opcode_off != in->prefix_len + in->has_rex;
    return !escaped && (in->opcode == 0xf6 || in->opcode == 0xf7) && (in->modrm >> 3 & 7) >= 6;
}

/* A value of that many bytes can be copied: not those of x87 that are long, nor what an event has no room for. */
static bool is_size(uint16_t n) { return n <= 8 || n == 16 || n == VALUE_MAX; }

static bool is_simple(const struct insn *in) {
    uint16_t rsp = 1u << RSP;
    return in->encoding <= ENC_EVEX && in->cls == INSN_PLAIN && in->has_mem && !in->rep && !in->push_size &&
           !in->pop_size && (in->load_size || in->store_size) && is_size(in->load_size) && is_size(in->store_size) &&
           !((in->gpr_read | in->gpr_write) & rsp) && !is_division(in);
}

/* The prefix that is part of an opcode: 0, 0x66, 0xf3 or 0xf2. */
static uint8_t mandatory_prefix(const struct insn *in, const uint8_t *bytes) {
    static const uint8_t of_vex[] = {0, 0x66, 0xf3, 0xf2};
    uint8_t found = 0;
    if (in->encoding != ENC_LEGACY) return of_vex[bytes[in->opcode_off - (in->encoding == ENC_EVEX ? 2 : 1)] & 3];
    for (int i = 0; i < in->prefix_len; i++)
        if (bytes[i] == 0xf2 || bytes[i] == 0xf3 || (bytes[i] == 0x66 && !found)) found = bytes[i];
    return found;
}

/* Whether the instruction takes a vector that is not aligned: the copy always is. Those that do not raise a fault. */
static bool takes_unaligned(const struct insn *in, const uint8_t *bytes) {
    uint8_t prefix = mandatory_prefix(in, bytes);
    bool is_move = in->opcode == 0x6f || in->opcode == 0x7f;
    if (in->encoding == ENC_LEGACY) /* movups, movupd, movdqu, lddqu */
        return bytes[in->opcode_off - 1] == 0x0f &&
               (in->opcode == 0x10 || in->opcode == 0x11 || (is_move && prefix == 0xf3) ||
                (in->opcode == 0xf0 && prefix == 0xf2));
    return !(is_move && prefix == 0x66) && in->opcode != 0x28 && in->opcode != 0x29 && in->opcode != 0x2a &&
           in->opcode != 0x2b && in->opcode != 0xe7;
}

static size_t copy_code(uint8_t *to, gaddr pc) {
    size_t n = MIN((size_t)INSN_MAX_LEN, PAGE_DOWN(pc) + PAGE_SIZE - pc);
    if (guest_copy(to, (const void *)pc, n) != 0) return 0;
    if (n < INSN_MAX_LEN && guest_copy(to + n, (const void *)(pc + n), INSN_MAX_LEN - n) == 0) n = INSN_MAX_LEN;
    return n;
}

static bool is_impossible; /* memory was seen that this process may not write: it takes pages whole */

/* Whether its operand, with the registers as they are, is on one page, and is no fault. */
static bool locate(struct thread *t, struct value_access *a) {
    a->addr = operand_address(t->tb, &a->in, a->bytes);
    if (a->size > 8 && a->addr % a->size && !takes_unaligned(&a->in, a->bytes)) return false;
    return a->addr % PAGE_SIZE + a->size <= PAGE_SIZE;
}

static bool decode(struct thread *t, struct value_access *a) {
    size_t n = copy_code(a->bytes, t->tb->pc);
    if (!n || !decode_insn(&a->in, a->bytes, n, t->tb->pc) || !is_simple(&a->in)) return false;
    a->size = (uint8_t)MAX(a->in.load_size, a->in.store_size);
    a->code = NULL;
    return locate(t, a);
}

#define SITES 2048       /* as many instructions are remembered; the others fault each time */
#define FAULT_EXITS 16   /* a fault costs about as much as so many exits from the cache */
#define MISSES 1024      /* exits for nothing, less those that saved faults, after which a site is retired */
#define FAULTS_LEAST 16  /* faults after which it comes back, the first time, ... */
#define FAULTS_MOST 4096 /* ... and at last, if coming back is not worth it */
#define CODE_SLOT 32     /* bytes: the instruction, with its operand at `copied`, and a return behind it */

/* The turn guards both. */
static struct value *copied; /* its operand; far from code: writing near it would slow down what runs there */
static uint8_t *code_area;   /* the last slot is for those that are not remembered */

static void make_area(void) {
    size_t size = (SITES + 1) * CODE_SLOT;
    if (copied) return;
    copied = arena_pages(PAGE_SIZE + size);
    code_area = (uint8_t *)copied + PAGE_SIZE;
    CHECK(SYS(mprotect, code_area, PAGE_UP(size), PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
}

static bool is_dropped(const struct insn *in, int i, uint8_t byte) {
    return i < in->prefix_len && (byte == 0x64 || byte == 0x65 || byte == 0x67); /* the address is known */
}

static const uint8_t *make_code(const struct value_access *a, uint32_t slot) {
    make_area();
    const struct insn *in = &a->in;
    uint8_t *start = code_area + slot * CODE_SLOT, *p = start;
    for (int i = 0; i < in->modrm_off; i++)
        if (!is_dropped(in, i, a->bytes[i])) *p++ = a->bytes[i];
    *p++ = (uint8_t)((in->modrm & 0x38) | 5); /* relative to the next instruction */
    int32_t disp = (int32_t)((uint8_t *)copied - (p + 4 + in->imm_size));
    memcpy(p, &disp, 4);
    memcpy(p + 4, a->bytes + in->len - in->imm_size, in->imm_size);
    p[4 + in->imm_size] = 0xc3;
    return start;
}

void values_run(struct thread *t, const struct value_access *a, struct value *memory) {
    const uint8_t *code = a->code ? a->code : make_code(a, SITES);
    *copied = *memory;
    insn_run(t->tb, code);
    *memory = *copied;
    t->tb->pc += a->in.len;
}

/* ---- where such instructions are ---- */

struct value_site {
    struct value_access access; /* as it was when it was noted */
    uint32_t hits, misses;      /* since it is active: in front of a page that is nobody's, and see MISSES */
    uint32_t faults, patience;  /* since it is retired, and how many it takes */
    bool is_retired;            /* it does not leave the cache */
};

static struct value_site *sites;
static uint32_t n_sites;
#define SLOTS (2 * SITES)
#define NUMBER_BITS 12
static uint64_t by_pc[SLOTS]; /* pc << NUMBER_BITS | number of the site, plus one; 0: none */
_Static_assert(SITES < 1 << NUMBER_BITS, "number of a site");

static uint64_t *slot_of(gaddr pc) {
    uint64_t i = (pc * 0x9e3779b97f4a7c15ull >> 32) % SLOTS;
    while (by_pc[i] && by_pc[i] >> NUMBER_BITS != pc) i = (i + 1) % SLOTS;
    return &by_pc[i];
}

static struct value_site *at_slot(uint64_t slot) { return slot ? &sites[(slot & ((1 << NUMBER_BITS) - 1)) - 1] : NULL; }

static struct value_site *site_of(gaddr pc) { return at_slot(unlikely(n_sites != 0) ? *slot_of(pc) : 0); }

bool values_has(gaddr pc) {
    const struct value_site *s = site_of(pc);
    return unlikely(s != NULL) && !s->is_retired;
}

/* A retired site was needed. */
static void fault_again(struct value_site *s) {
    if (!s->is_retired || ++s->faults < s->patience) return;
    s->is_retired = false;
    s->hits = s->misses = 0;
    cache_invalidate_at(s->access.in.pc);
}

void values_note(const struct value_access *a) {
    if (unlikely(debug_is_on)) return; /* breaks are the debugger's: code that is made anew would have none for this */
    if (!sites) sites = arena_pages(SITES * sizeof *sites);
    lock_take(&cache_lock);
    uint64_t *slot = slot_of(a->in.pc);
    if (!*slot && n_sites < SITES) {
        sites[n_sites].access = *a;
        sites[n_sites].access.code = make_code(a, n_sites);
        sites[n_sites].patience = FAULTS_LEAST;
        *slot = a->in.pc << NUMBER_BITS | ++n_sites;
        cache_invalidate_at(a->in.pc);
    } else if (*slot) {
        fault_again(at_slot(*slot));
    }
    lock_drop(&cache_lock);
}

static void count_hit(struct value_site *s) {
    s->hits++;
    s->misses -= MIN(s->misses, (uint32_t)FAULT_EXITS);
}

/* What touches all kinds of memory (memcpy) runs faster if it faults at the few pages that are nobody's; so does what touches a page
 * that has an owner for long. */
static void count_miss(struct value_site *s) {
    if (++s->misses < MISSES) return;
    lock_take(&cache_lock);
    s->patience = s->hits >= MISSES ? FAULTS_LEAST : MIN(s->patience * 2, (uint32_t)FAULTS_MOST);
    s->is_retired = true;
    s->faults = 0;
    cache_invalidate_at(s->access.in.pc);
    lock_drop(&cache_lock);
}

/* The instruction at the thread's pc is the one that was noted there. */
static bool is_same(const struct thread *t, const struct value_site *s) {
    uint8_t bytes[INSN_MAX_LEN];
    uint8_t len = s->access.in.len;
    return guest_copy(bytes, (const void *)t->tb->pc, len) == 0 && memcmp(bytes, s->access.bytes, len) == 0;
}

bool values_decode(struct thread *t, struct value_access *a) {
    const struct value_site *s = site_of(t->tb->pc);
    if (is_impossible) return false;
    if (!s || !is_same(t, s)) return decode(t, a);
    *a = s->access;
    return locate(t, a);
}

struct tracked_page {
    gaddr start;      /* 0: none */
    uint64_t changes; /* aspace_changes, when it was looked up */
    struct shared_at at;
    uint32_t prot;
};

#define TRACKED_PAGES 256
static struct tracked_page tracked[TRACKED_PAGES]; /* by address; the turn guards it */

static const struct tracked_page *tracked_at(gaddr addr) {
    struct tracked_page *p = &tracked[addr / PAGE_SIZE % TRACKED_PAGES];
    struct mapping m;
    if (likely(p->start == PAGE_DOWN(addr) && p->changes == aspace_changes)) return p;
    uint64_t changes = aspace_changes;
    if (!aspace_find(addr, &m) || !m.tracked) return NULL;
    *p = (struct tracked_page){PAGE_DOWN(addr), changes, shared_page_of(&m, addr), m.prot};
    return p;
}

/* What is at the thread's pc now may be another instruction: then it faults, and is looked at. */
static bool do_break(struct thread *t, struct value_site *s) {
    struct value_access *a = &s->access;
    if (!locate(t, a) || !shared_may_be(a->addr, a->size) || is_impossible) return false;
    const struct tracked_page *p = tracked_at(a->addr);
    uint32_t needed = a->in.store_size ? PROT_WRITE : PROT_READ | PROT_WRITE | PROT_EXEC;
    if (!p || !(p->prot & needed) || shared_owns(p->at) || !is_same(t, s)) return false;
    return the_mode->access(t, p->at, a, false);
}

enum break_end values_break(struct tblock *tb) {
    struct value_site *s = site_of(tb->pc);
    if (s && do_break(tb->thread, s)) {
        count_hit(s);
        return BREAK_DONE;
    }
    if (s) count_miss(s);
    return BREAK_PASSED;
}

/* ---- recording ---- */

/* A page's other view, which is always open. */
struct alias {
    struct shared_at at;
    uint8_t *page;
    bool stays; /* somebody may wait for a word of it */
};

#define ALIASES 8192
#define PROBES 8
static struct alias *aliases;

/* The page's place, or one for it: the kernel's mappings are few, so others may have to go. */
static struct alias *alias_place(struct shared_at at) {
    struct alias *other = NULL;
    uint64_t hash = (at.object * 0x9e3779b97f4a7c15ull + at.page) * 0x9e3779b97f4a7c15ull >> 40;
    if (!aliases) aliases = arena_pages(ALIASES * sizeof *aliases);
    for (uint64_t i = 0; i < PROBES; i++) {
        struct alias *x = &aliases[(hash + i) % ALIASES];
        if (!x->page || (x->at.object == at.object && x->at.page == at.page)) return x;
        if (!x->stays) other = x;
    }
    return other;
}

/* NULL: there is none, or no room. */
static struct alias *alias_of(struct shared_at at, gaddr addr) {
    struct alias *x = alias_place(at);
    if (!x || (x->page && x->at.object == at.object && x->at.page == at.page)) return x;
    uint8_t *to = x->page ? x->page : arena_reserve(PAGE_SIZE);
    x->page = NULL;
    long got = SYS(mremap, PAGE_DOWN(addr), 0, PAGE_SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
    is_impossible = got != (long)to || SYS(mprotect, to, PAGE_SIZE, PROT_READ | PROT_WRITE) != 0;
    if (is_impossible) return NULL;
    x->at = at;
    x->page = to;
    return x;
}

void values_await_dying(void) {
    struct __kernel_timespec ms = {0, 1000000};
    SYS(nanosleep, &ms, 0);
}

void values_next_version(struct shared_page *p) {
    uint32_t known = p->version;
    if ((int32_t)(p->handed - known) > 0) known = p->handed; /* who handed it over was killed just then */
    __atomic_store_n(&p->version, known + 1, __ATOMIC_RELEASE);
}

static void page_lock(struct shared_page *p) {
    uint16_t mine = (uint16_t)(the_stream.ring + 1);
    for (int i = 0;; i++) {
        uint16_t holder = 0;
        if (__atomic_compare_exchange_n(&p->lock, &holder, mine, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
        if (holder == mine) return; /* a process that has our memory, and was killed: we have the turn */
        if (i % 64 == 63) SYS(sched_yield);
        if (i > 64 && channel_is_stopped()) return; /* who has it may be stopped for good; nothing is logged any more */
        bool dead = i % 4096 == 4095 && !shared_sharer_lives(&shared_tables()->sharers[holder - 1]);
        if (dead && __atomic_compare_exchange_n(&p->lock, &holder, mine, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return values_await_dying(); /* it may be in the middle of an access yet */
    }
}

static void page_unlock(struct shared_page *p) { __atomic_store_n(&p->lock, 0, __ATOMIC_RELEASE); }

static bool is_value_page(const struct shared_page *p) {
    return __atomic_load_n(&p->owner, __ATOMIC_ACQUIRE) == OWNER_VALUES;
}

static void count_up(uint16_t *n) { *n = (uint16_t)(*n + (*n < UINT16_MAX)); }

static bool is_alone(struct shared_page *p) {
    uint16_t mine = (uint16_t)(the_stream.ring + 1);
    if (p->last != mine) {
        p->last = mine;
        p->streak = 0;
        count_up(&p->visits);
    }
    count_up(&p->uses);
    return ++p->streak > ALONE && !p->outsiders;
}

/* Processes that are not recorded (any more) access the page as it is, without its lock: they see whole values, and none of
 * their changes is lost. */
static struct value load_whole(const uint8_t *at, uint8_t size) {
    struct value v = {{0}};
    switch (size) {
    case 1: v.words[0] = __atomic_load_n(at, __ATOMIC_ACQUIRE); break;
    case 2: v.words[0] = __atomic_load_n((const uint16_t *)at, __ATOMIC_ACQUIRE); break;
    case 4: v.words[0] = __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE); break;
    case 8: v.words[0] = __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE); break;
    default: memcpy(&v, at, size);
    }
    return v;
}

static void store_whole(uint8_t *at, uint8_t size, const struct value *v) {
    uint64_t word = v->words[0];
    switch (size) {
    case 1: __atomic_store_n(at, (uint8_t)word, __ATOMIC_RELEASE); return;
    case 2: __atomic_store_n((uint16_t *)at, (uint16_t)word, __ATOMIC_RELEASE); return;
    case 4: __atomic_store_n((uint32_t *)at, (uint32_t)word, __ATOMIC_RELEASE); return;
    case 8: __atomic_store_n((uint64_t *)at, word, __ATOMIC_RELEASE); return;
    default: memcpy(at, v, size);
    }
}

#define SWAP(type)                                                                                     \
    __atomic_compare_exchange_n((type *)at, &(type){(type)old->words[0]}, (type) new->words[0], false, \
                                __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)

/* False: it is not `old` any more. */
static bool swap_whole(uint8_t *at, uint8_t size, const struct value *old, const struct value *new) {
    switch (size) {
    case 1: return SWAP(uint8_t);
    case 2: return SWAP(uint16_t);
    case 4: return SWAP(uint32_t);
    case 8: return SWAP(uint64_t);
    default: store_whole(at, size, new); return true;
    }
}

/* *loaded: what was there; *left: what is there then. */
static void do_access(struct thread *t, const struct value_access *a, uint8_t *at, struct value *loaded,
                      struct value *left) {
    bool changes = a->in.load_size && a->in.store_size; /* then registers and flags are all that it changes besides */
    uint64_t gpr[16], rflags = t->tb->rflags, pc = t->tb->pc;
    memcpy(gpr, t->tb->gpr, sizeof gpr);
    for (;;) {
        *left = *loaded = load_whole(at, a->size);
        values_run(t, a, left);
        if (!changes && a->in.store_size) store_whole(at, a->size, left);
        if (!changes || swap_whole(at, a->size, loaded, left)) return;
        memcpy(t->tb->gpr, gpr, sizeof gpr); /* once more, with what is there now */
        t->tb->rflags = rflags;
        t->tb->pc = pc;
    }
}

bool values_record(struct thread *t, struct shared_at at, const struct value_access *a, bool faulted) {
    if (unlikely(channel_is_stopped()) || unlikely(!shared_self()))
        return false; /* others have to know when we are no more */
    struct shared_page *p = &shared_tables()->pages[shared_index(at, 0)];
    const struct alias *alias = is_value_page(p) ? alias_of(at, a->addr) : NULL;
    if (!alias) return false;
    size_t more = left_look(at, alias->page);
    struct event *e = /* may wait, so without the lock */
        event_new(t, EV_INSN, RECORDED_SHARED, sizeof(struct ev_insn) + more);
    struct ev_insn *v = (struct ev_insn *)(e + 1);
    struct value loaded, left;
    page_lock(p);
    bool done = is_value_page(p) && !is_alone(p);
    uint16_t streak = p->streak;
    if (done) do_access(t, a, alias->page + a->addr % PAGE_SIZE, &loaded, &left);
    page_unlock(p);
    if (!done) {
        stream_cancel(e);
        return false;
    }
    bool is_kept = left_saw(at, (struct ev_contents *)(v + 1), a->addr % PAGE_SIZE, &left, a->size);
    *v = (struct ev_insn){loaded.words[0], loaded.words[1], loaded.words[2], loaded.words[3], is_kept ? INSN_SHOWN : 0};
    stream_commit();
    if (streak % SPINS == SPINS - 1) SYS(sched_yield); /* it may wait for somebody who does not run */
    return true;
}

gaddr values_word(gaddr addr) {
    struct mapping m;
    if (!shared_may_be(addr, 4) || channel_is_stopped() || is_impossible || addr % 4) return addr;
    bool is_open = aspace_find(addr, &m) && m.tracked && (m.prot & PROT_READ) && (m.prot & PROT_WRITE);
    struct shared_at at = is_open ? shared_page_of(&m, addr) : (struct shared_at){0};
    if (!is_open || shared_owns(at) || !is_value_page(&shared_tables()->pages[shared_index(at, 0)])) return addr;
    struct alias *alias = alias_of(at, addr);
    if (!alias) return addr;
    alias->stays = true; /* the kernel may look there again after a signal */
    return (gaddr)alias->page + addr % PAGE_SIZE;
}

bool values_will_do(const struct shared_page *p) {
    return is_value_page(p) && (p->outsiders || p->last != the_stream.ring + 1 || p->streak <= ALONE);
}

bool values_is_hot(struct shared_page *p, uint64_t now_ns) {
    bool soon = now_ns - p->since_ns < HOT_WITHIN_NS;
    p->heat = (int16_t)(p->heat < 0 || soon ? p->heat + 1 : p->heat / 2);
    return p->heat >= HOT;
}

void values_begin(struct shared_page *p) { p->last = p->streak = p->uses = p->visits = 0; }

/* The page has an owner again. */
static void cool_down(struct shared_page *p) {
    bool was_worth_it = p->uses >= FEW && p->uses <= MANY * p->visits;
    p->cold = was_worth_it ? 0 : (uint16_t)MAX(COLD_LEAST, MIN(p->cold * 2, COLD_MOST));
    p->heat = (int16_t)(was_worth_it ? HOT - 1 : -p->cold);
}

bool values_take_back(struct shared_page *p, uint64_t me) {
    page_lock(p);
    bool ours = is_value_page(p);
    if (ours) {
        cool_down(p);
        p->streak = 0;
        values_next_version(p);
        __atomic_store_n(&p->owner, me, __ATOMIC_RELEASE);
    }
    page_unlock(p);
    return ours;
}
