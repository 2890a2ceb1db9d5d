#include "sphere/shared_values.h"

#include <linux/mman.h>

#include "engine/cache.h"
#include "engine/engine.h"
#include "inproc/arena.h"
#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "log/events.h"
#include "sphere/channel.h"
#include "sphere/event_log.h"
#include "sphere/gate.h"
#include "sphere/mode.h"
#include "sphere/operand.h"

#define HOT 6                  /* so many changes of hands in a row ... */
#define HOT_WITHIN_NS 10000000 /* ... each within this time of the one before */
#define COLD (-200)            /* changes of hands until a page is looked at again that was needed as a whole */
#define SPINS 256              /* accesses in a row after which others may run */
#define ALONE 3000             /* accesses of one process in a row: nobody else wants the page any more */

/* ---- instructions ---- */

static bool is_simple(const struct insn *in) {
    uint16_t rsp = 1u << RSP;
    return in->encoding == ENC_LEGACY && in->cls == INSN_PLAIN && in->has_mem && !in->rep && !in->push_size &&
           !in->pop_size && (in->load_size || in->store_size) && in->load_size <= 8 && in->store_size <= 8 &&
           !((in->gpr_read | in->gpr_write) & rsp);
}

static size_t copy_code(uint8_t *to, gaddr pc) {
    size_t n = MIN((size_t)INSN_MAX_LEN, PAGE_DOWN(pc) + PAGE_SIZE - pc);
    if (guest_copy(to, (const void *)pc, n) != 0) return 0;
    if (n < INSN_MAX_LEN && guest_copy(to + n, (const void *)(pc + n), INSN_MAX_LEN - n) == 0) n = INSN_MAX_LEN;
    return n;
}

static bool is_impossible; /* memory was seen that this process may not write: it takes pages whole */

bool values_decode(struct thread *t, struct value_access *a) {
    size_t n = copy_code(a->bytes, t->tb->pc);
    if (is_impossible || !n || !decode_insn(&a->in, a->bytes, n, t->tb->pc) || !is_simple(&a->in)) return false;
    a->addr = operand_address(t->tb, &a->in, a->bytes);
    a->size = (uint8_t)MAX(a->in.load_size, a->in.store_size);
    return a->addr % PAGE_SIZE + a->size <= PAGE_SIZE;
}

/* The instruction, with its operand at `value`, and a return behind it. The turn guards it. */
struct made_code {
    uint8_t bytes[32];
    uint64_t value;
};

static struct made_code *made; /* in a page that can be executed */

static bool is_dropped(const struct insn *in, int i, uint8_t byte) {
    return i < in->prefix_len && (byte == 0x64 || byte == 0x65 || byte == 0x67); /* the address is known */
}

static void make_code(const struct value_access *a) {
    const struct insn *in = &a->in;
    uint8_t *p = made->bytes;
    for (int i = 0; i < in->modrm_off; i++)
        if (!is_dropped(in, i, a->bytes[i])) *p++ = a->bytes[i];
    *p++ = (uint8_t)((in->modrm & 0x38) | 5); /* relative to the next instruction */
    int32_t disp = (int32_t)((uint8_t *)&made->value - (p + 4 + in->imm_size));
    memcpy(p, &disp, 4);
    memcpy(p + 4, a->bytes + in->len - in->imm_size, in->imm_size);
    p[4 + in->imm_size] = 0xc3;
}

void values_run(struct thread *t, const struct value_access *a, uint64_t *value) {
    if (!made) {
        made = arena_pages(PAGE_SIZE);
        CHECK(SYS(mprotect, made, PAGE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
    }
    make_code(a);
    made->value = *value;
    insn_run(t->tb, made->bytes);
    *value = made->value;
    t->tb->pc += a->in.len;
}

/* ---- where such instructions are ---- */

#define SITES 4096 /* a power of two; the others fault each time */
static gaddr sites[SITES];
static uint32_t n_sites;

static gaddr *site(gaddr pc) {
    uint64_t i = (pc * 0x9e3779b97f4a7c15ull >> 32) % SITES;
    while (sites[i] && sites[i] != pc) i = (i + 1) % SITES;
    return &sites[i];
}

bool values_has(gaddr pc) { return unlikely(n_sites != 0) && *site(pc) == pc; }

void values_note(gaddr pc) {
    lock_take(&cache_lock);
    gaddr *s = site(pc);
    if (!*s && n_sites < SITES / 2) {
        *s = pc;
        n_sites++;
    }
    if (*s) cache_invalidate_at(pc);
    lock_drop(&cache_lock);
}

void values_break(struct tblock *tb) {
    struct thread *t = tb->thread;
    struct value_access a;
    struct mapping m;
    struct shared_at at;
    if (values_has(tb->pc) && values_decode(t, &a) && aspace_find(a.addr, &m) && m.tracked) {
        at = shared_page_of(&m, a.addr);
        uint32_t needed = a.in.store_size ? PROT_WRITE : PROT_READ | PROT_WRITE | PROT_EXEC;
        if ((m.prot & needed) && !shared_owns(at) && the_mode->access(t, at, &a, false)) return;
    }
    tb->skip_break = true;
}

/* ---- recording ---- */

/* The page's other view, which is always open. */
#define ALIASES 1024
static struct {
    struct shared_at at;
    uint8_t *page;
} aliases[ALIASES];

static uint8_t *alias_of(struct shared_at at, gaddr addr) {
    uint64_t i = (at.object * 0x9e3779b97f4a7c15ull + at.page) % ALIASES;
    if (aliases[i].page && aliases[i].at.object == at.object && aliases[i].at.page == at.page) return aliases[i].page;
    uint8_t *to = aliases[i].page ? aliases[i].page : arena_reserve(PAGE_SIZE);
    aliases[i].page = NULL;
    long got = SYS(mremap, PAGE_DOWN(addr), 0, PAGE_SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
    is_impossible = got != (long)to || SYS(mprotect, to, PAGE_SIZE, PROT_READ | PROT_WRITE) != 0;
    if (is_impossible) return NULL;
    aliases[i].at = at;
    return aliases[i].page = to;
}

static void page_lock(struct shared_page *p) {
    uint16_t mine = (uint16_t)(the_stream.ring + 1);
    for (int i = 0;; i++) {
        uint16_t holder = 0;
        if (__atomic_compare_exchange_n(&p->lock, &holder, mine, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
        if (i % 64 == 63) SYS(sched_yield);
        bool dead = i % 4096 == 4095 && !shared_sharer_lives(&shared_tables()->sharers[holder - 1]);
        if (dead && __atomic_compare_exchange_n(&p->lock, &holder, mine, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
    }
}

static void page_unlock(struct shared_page *p) { __atomic_store_n(&p->lock, 0, __ATOMIC_RELEASE); }

static bool is_value_page(const struct shared_page *p) {
    return __atomic_load_n(&p->owner, __ATOMIC_ACQUIRE) == OWNER_VALUES;
}

static bool is_alone(struct shared_page *p) {
    uint16_t mine = (uint16_t)(the_stream.ring + 1);
    if (p->last != mine) p->streak = 0;
    p->last = mine;
    return ++p->streak > ALONE;
}

static void do_access(struct thread *t, const struct value_access *a, uint8_t *at) {
    struct event *e = event_new(t, EV_INSN, RECORDED_SHARED, sizeof(struct ev_insn));
    uint64_t value = 0;
    memcpy(&value, at, a->size);
    *(struct ev_insn *)(e + 1) = (struct ev_insn){.rax = value};
    values_run(t, a, &value);
    if (a->in.store_size) memcpy(at, &value, a->size);
}

bool values_record(struct thread *t, struct shared_at at, const struct value_access *a, bool faulted) {
    struct shared_page *p = &shared_tables()->pages[shared_index(at, 0)];
    uint8_t *page = is_value_page(p) ? alias_of(at, a->addr) : NULL;
    if (!page) return false;
    page_lock(p);
    bool done = is_value_page(p) && !is_alone(p);
    if (done) do_access(t, a, page + a->addr % PAGE_SIZE);
    page_unlock(p);
    if (!done) return false;
    stream_commit();
    if (p->streak % SPINS == SPINS - 1) SYS(sched_yield); /* it may wait for somebody who does not run */
    return true;
}

bool values_will_do(const struct shared_page *p) {
    return is_value_page(p) && (p->last != the_stream.ring + 1 || p->streak <= ALONE);
}

bool values_is_hot(struct shared_page *p, uint64_t now_ns) {
    bool soon = now_ns - p->since_ns < HOT_WITHIN_NS;
    p->heat = (int16_t)(p->heat < 0 || soon ? p->heat + 1 : p->heat / 2);
    return p->heat >= HOT;
}

bool values_take_back(struct shared_page *p, uint64_t me) {
    page_lock(p);
    bool ours = is_value_page(p);
    if (ours) {
        p->heat = p->streak <= ALONE ? COLD : HOT - 1; /* who was alone may not be for long */
        p->streak = 0;
        __atomic_add_fetch(&p->version, 1, __ATOMIC_RELEASE);
        __atomic_store_n(&p->owner, me, __ATOMIC_RELEASE);
    }
    page_unlock(p);
    return ours;
}
