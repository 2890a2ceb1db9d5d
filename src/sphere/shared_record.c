/* Recording memory shared between processes: pages change hands on request.
 *
 * Who faults on a page that somebody else owns asks the owner and waits, without the turn. Each address space that owns pages has
 * a pager, a thread of the runtime that the program does not see: it hands over what is asked for while the R-threads are in
 * system calls, and stops one that computes at its next tick point, where that R-thread does it itself. Whoever does it has the
 * turn. An owner that is dead gives nothing: its pages are taken. */
#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/futex.h>
#include <linux/mman.h>
#include <linux/sched.h>
#include <linux/time_types.h>

#include "engine/cache.h"
#include "inproc/fds.h"
#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "recorder/order.h"
#include "sphere/channel.h"
#include "sphere/event_log.h"
#include "sphere/frozen.h"
#include "sphere/gate.h"
#include "sphere/shared.h"
#include "sphere/shared_left.h"
#include "sphere/shared_stop.h"
#include "sphere/shared_values.h"
#include "sphere/signals.h"
#include "sphere/sys/special.h"
#include "sphere/vdso.h"

/* How long pages stay at least, since the last one came: long enough for getting them to have been worth it while the owner
 * computes, just long enough for one access while it waits for something. An owner that waits for yet another page needs all of
 * them together: it gives them only to who has waited longer than itself for such a set (so somebody always gets his), or when
 * a page has been here for long. */
#define LEASE_COMPUTING_NS 200000ull
#define LEASE_WAITING_NS 30000ull
#define LEASE_MOST_NS 100000000ull
#define LOOK_NS 60000l    /* how often the pager looks for a moment to act */
#define WAIT_NS 20000000l /* how often a waiting thread looks whether the owner lives */
#define AROUND 16         /* pages that nobody owns are taken in groups */
#define SPINS 300
#define CLAIM_MOST (8ull << 30) /* larger files are taken page by page: few of them are used as a whole */

static uint64_t me; /* OWNER; 0: not registered */
static struct shared_sharer *self;
static struct thread *pager;
static uint32_t pager_is_up; /* futex */
static bool pager_ends;
static bool has_left; /* our entry in the tables may be another's */
static uint64_t told_end; /* OWNER of the dead one that our stream has told of last */
static uint64_t last_take_ns;
static uint64_t quiet_at; /* what the bell was when there was no request, plus one; 0: not known */

static uint64_t now_ns(void) {
    int64_t ts[2];
    if (!vdso_clock_gettime || vdso_clock_gettime(1 /* CLOCK_MONOTONIC */, ts) != 0) SYS(clock_gettime, 1, ts);
    return (uint64_t)ts[0] * 1000000000ull + (uint64_t)ts[1];
}

static void wake_all(uint32_t *word) { SYS(futex, word, FUTEX_WAKE, INT32_MAX, 0, 0, 0); }

static void wait_on(uint32_t *word, uint32_t seen, long ns) {
    struct __kernel_timespec timeout = {ns / 1000000000, ns % 1000000000};
    SYS(futex, word, FUTEX_WAIT, seen, &timeout, 0, 0);
}

/* ---- who is who ---- */

static void enrol(void) {
    if (me) return;
    self = &shared_tables()->sharers[the_stream.ring];
    __atomic_store_n(&self->stream, UINT64_MAX, __ATOMIC_RELEASE);
    self->ended = self->sleeps = self->stopping = self->stopped = 0;
    self->session_ns = now_ns();
    for (int i = 0; i < SHARED_REQUESTS; i++) self->request[i] = 0;
    quiet_at = 0;
    __atomic_store_n(&self->life, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&self->pid, (uint32_t)SYS(getpid), __ATOMIC_SEQ_CST); /* can be asked from here on */
    __atomic_store_n(&self->stream, the_stream.number, __ATOMIC_RELEASE);
    me = OWNER(the_stream.number, the_stream.ring);
}

enum fate { ALIVE, ENDED, KILLED };

bool shared_sharer_lives(const struct shared_sharer *s) {
    if (__atomic_load_n(&s->ended, __ATOMIC_ACQUIRE)) return false;
    if (__atomic_load_n(&s->life, __ATOMIC_ACQUIRE) & FUTEX_OWNER_DIED) return false;
    return s->life || SYS(kill, s->pid, 0) != -ESRCH;
}

static enum fate fate_of(uint64_t owner) {
    struct shared_sharer *s = &shared_tables()->sharers[OWNER_RING(owner)];
    if (shared_has_ended(OWNER_STREAM(owner))) return ENDED; /* the ring may be another's by now */
    if (__atomic_load_n(&s->stream, __ATOMIC_ACQUIRE) != OWNER_STREAM(owner)) return KILLED;
    if (__atomic_load_n(&s->ended, __ATOMIC_ACQUIRE)) return ENDED;
    return shared_sharer_lives(s) ? ALIVE : KILLED;
}

static bool is_stopped(uint32_t ring) {
    return __atomic_load_n(&shared_tables()->sharers[ring].stopped, __ATOMIC_ACQUIRE);
}

static uint64_t owner_of(const struct shared_page *p, uint64_t index) {
    uint64_t owner = __atomic_load_n(&p->owner, __ATOMIC_ACQUIRE);
    return owner ? owner : shared_tables()->chunks[index / SHARED_CHUNK_PAGES].first;
}

/* Those who wait for the page look again. */
static void announce(struct shared_page *p) {
    __atomic_add_fetch(&p->moves, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&p->waiters, __ATOMIC_SEQ_CST)) wake_all(&p->moves);
}

/* The page is next's from now on, whose first event may be on its way at once: it names the version. The RELEASE is committed. */
static void pass(struct shared_page *p, uint64_t next) {
    if (p->outsiders) next = OWNER_VALUES;
    __atomic_store_n(&p->handed, p->version + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&p->version, p->version + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&p->owner, next, __ATOMIC_RELEASE);
    announce(p);
}

/* ---- taking ---- */

static struct ev_page *log_sized(struct thread *t, enum event_kind kind, struct shared_at at, uint32_t version,
                                 uint64_t from, uint8_t flags, uint64_t behind) {
    struct event *e = event_new(t, kind, 0, sizeof(struct ev_page) + behind);
    e->flags = flags;
    if (t == pager) { /* is no R-thread */
        e->thread = e->regs = 0;
        e->ticks = 0;
    }
    struct ev_page *v = (struct ev_page *)(e + 1);
    *v = (struct ev_page){
        .object = at.object, .page = at.page, .version = version, .writable = 1, .from = (uint32_t)(from + 1)};
    return v;
}

static struct ev_page *log_page(struct thread *t, enum event_kind kind, struct shared_at at, uint32_t version,
                                uint64_t from, uint8_t flags) {
    return log_sized(t, kind, at, version, from, flags, 0);
}

/* The page is open. */
static struct ev_page *log_acquired(struct thread *t, struct shared_at at, gaddr addr, const struct shared_page *p,
                                    uint64_t from) {
    static uint8_t bytes[PAGE_SIZE];
    struct ev_contents contents;
    bool has = left_acquired(at, addr, &contents, bytes);
    uint32_t n = has ? contents_bytes(contents.blocks) : 0;
    struct ev_page *v = log_sized(t, EV_ACQUIRE, at, p->version, from, 0, has ? sizeof contents + n : 0);
    if (has) *(struct ev_contents *)(v + 1) = contents;
    if (has) memcpy((struct ev_contents *)(v + 1) + 1, bytes, n);
    return v;
}

/* Pages that were taken last: those of the operation that is under way. */
#define SET 128
static uint32_t set[SET]; /* index + 1 */
static uint32_t n_taken;

/* Pages that are left to outsiders, but were needed as a whole: they go back as soon as their time is over. */
#define VISITING 16
static uint32_t visiting[VISITING]; /* index + 1 */
static uint32_t n_visiting;

static void note_taken(const struct shared_page *p) {
    uint32_t entry = (uint32_t)(p - shared_tables()->pages) + 1;
    set[n_taken++ % SET] = entry;
    if (likely(!p->outsiders) || n_visiting == VISITING) return;
    visiting[n_visiting++] = entry;
    shared_ring(self); /* the pager gives it back, if nobody else does */
}

/* p is ours in the tables. from: the stream that had it and is no more, or -1. */
static void take(struct thread *t, struct shared_at at, gaddr addr, struct shared_page *p, uint64_t from) {
    p->since_ns = last_take_ns = now_ns();
    p->last = (uint16_t)(the_stream.ring + 1);
    note_taken(p);
    shared_take(at);
    if (unlikely(p->outsiders)) frozen_make(at);
    struct ev_page *v = log_acquired(t, at, addr, p, from);
    if (from != UINT64_MAX) v->lost = p->version - 1 - p->handed;
}

/* Pages that nobody has owned yet are likely to be wanted together. */
static void take_around(struct thread *t, struct shared_at at, gaddr addr) {
    struct mapping m;
    if (!aspace_find(addr, &m)) return;
    uint64_t in_mapping = (m.end - addr) / PAGE_SIZE;
    for (uint64_t i = 1; i < MIN(in_mapping, AROUND) && (at.page + i) % AROUND; i++) {
        struct shared_at next = {at.object, at.page + i};
        uint64_t index = shared_index(next, 0), nobody = 0;
        struct shared_page *p = &shared_tables()->pages[index];
        if (owner_of(p, index) ||
            !__atomic_compare_exchange_n(&p->owner, &nobody, me, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return;
        take(t, next, addr + i * PAGE_SIZE, p, UINT64_MAX);
    }
}

/* Before a page of a dead owner is ours: who dies before its stream says that it has the page is the dead one whose end the next heir
 * awaits. Its replay ends behind that of this owner, for it awaits it here. */
static void tell_end(struct thread *t, uint64_t owner, enum fate fate) {
    if (told_end == owner) return;
    struct ev_page *v = log_page(t, EV_ACQUIRE, (struct shared_at){0, 0}, 0, OWNER_STREAM(owner), 0);
    v->writable = PAGE_AWAITED;
    stream_commit();
    if (fate == KILLED) values_await_dying(); /* its other threads are on their way out, too */
    told_end = owner;
}

/* The owner is no more. What its last moments did to the page may not be in its stream: the contents are, unless it ended in
 * good order. */
static bool inherit(struct thread *t, struct shared_at at, struct shared_page *p, uint64_t owner, enum fate fate,
                    gaddr addr) {
    uint64_t seen = __atomic_load_n(&p->owner, __ATOMIC_ACQUIRE);
    if (seen && seen != owner) return false;
    tell_end(t, owner & ~OWNER_GIVEN, fate);
    if (!__atomic_compare_exchange_n(&p->owner, &seen, me, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return false;
    values_next_version(p);
    if (!addr) addr = shared_address_of(at);
    take(t, at, addr, p, OWNER_STREAM(owner));
    if (addr && (fate == KILLED || p->outsiders)) event_memory(t, EV_MEMORY, addr, PAGE_SIZE, false);
    announce(p);
    return true;
}

/* ---- asking ---- */

/* Pages that threads of this address space wait for; index + 1. */
#define AWAITED 64
static uint64_t awaited[AWAITED];
static uint32_t n_awaited;

static void await(uint64_t index, bool begin) {
    __atomic_add_fetch(&n_awaited, begin ? 1u : -1u, __ATOMIC_SEQ_CST);
    for (int i = 0; i < AWAITED; i++) {
        uint64_t from = begin ? 0 : index + 1, to = begin ? index + 1 : 0;
        if (__atomic_compare_exchange_n(&awaited[i], &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) return;
    }
}

bool shared_is_awaited(void) { return __atomic_load_n(&n_awaited, __ATOMIC_SEQ_CST) != 0; }

static bool is_awaited(uint64_t index) {
    for (int i = 0; i < AWAITED; i++)
        if (__atomic_load_n(&awaited[i], __ATOMIC_SEQ_CST) == index + 1) return true;
    return false;
}

/* The request has been met, by whomever. */
static void withdraw(uint64_t owner, uint64_t index) {
    struct shared_sharer *s = &shared_tables()->sharers[OWNER_RING(owner)];
    uint64_t request = REQUEST(index, the_stream.ring, the_stream.number);
    for (int i = 0; i < SHARED_REQUESTS; i++) {
        uint64_t expected = request;
        if (__atomic_load_n(&s->request[i], __ATOMIC_RELAXED) == request)
            __atomic_compare_exchange_n(&s->request[i], &expected, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    }
}

void shared_ring(struct shared_sharer *s) {
    __atomic_add_fetch(&s->bell, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&s->sleeps, __ATOMIC_SEQ_CST)) wake_all(&s->bell);
}

static void ask(uint64_t owner, uint64_t index) {
    struct shared_sharer *s = &shared_tables()->sharers[OWNER_RING(owner)];
    uint64_t request = REQUEST(index, the_stream.ring, the_stream.number);
    bool there = false;
    for (int i = 0; i < SHARED_REQUESTS && !there; i++)
        there = __atomic_load_n(&s->request[i], __ATOMIC_RELAXED) == request;
    for (int i = 0; i < SHARED_REQUESTS && !there; i++) {
        uint64_t none = 0;
        there = __atomic_load_n(&s->request[i], __ATOMIC_RELAXED) == 0 &&
                __atomic_compare_exchange_n(&s->request[i], &none, request, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    }
    shared_ring(s);
}

static void wait_for(struct thread *t, struct shared_page *p, uint64_t owner, uint64_t index) {
    uint32_t seen = __atomic_load_n(&p->moves, __ATOMIC_ACQUIRE);
    if (owner_of(p, index) != owner) return;
    order_enter_call(t, true);
    __atomic_add_fetch(&p->waiters, 1, __ATOMIC_SEQ_CST);
    ask(owner, index);
    for (int i = 0; i < SPINS && __atomic_load_n(&p->moves, __ATOMIC_ACQUIRE) == seen; i++) __builtin_ia32_pause();
    if (__atomic_load_n(&p->moves, __ATOMIC_ACQUIRE) == seen) wait_on(&p->moves, seen, WAIT_NS);
    __atomic_sub_fetch(&p->waiters, 1, __ATOMIC_SEQ_CST);
    withdraw(owner, index);
    order_leave_call(t);
}

static void take_values(struct thread *t, struct shared_at at, struct shared_page *p, gaddr addr) {
    p->since_ns = last_take_ns = now_ns();
    note_taken(p);
    shared_take(at);
    if (unlikely(p->outsiders)) frozen_make(at);
    if (!addr) addr = shared_address_of(at);
    struct ev_page *v = log_acquired(t, at, addr, p, UINT64_MAX);
    v->writable = 2;
    v->lost = p->version - 1 - p->handed;
    if (addr) event_memory(t, EV_MEMORY, addr, PAGE_SIZE, false);
}

static bool becomes_ours(struct shared_page *p, uint64_t from) {
    /* a page of a chunk that is one owner's says nothing of it */
    uint64_t expected = __atomic_load_n(&p->owner, __ATOMIC_ACQUIRE) ? from : 0;
    return __atomic_compare_exchange_n(&p->owner, &expected, me, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* A page that its owner has given up to nobody, and another one would take: it need not be anybody's. */
static bool becomes_values(struct thread *t, struct shared_page *p) {
    uint64_t nobody = OWNER_NOBODY;
    if (!t->access_will_do || p->last == the_stream.ring + 1 || !values_is_hot(p, now_ns())) return false;
    if (__atomic_compare_exchange_n(&p->owner, &nobody, OWNER_VALUES, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        values_begin(p);
    return true;
}

/* Ours, though not taken yet; nobody's; or on its way to a process that is stopped. */
static bool is_free(uint64_t owner) {
    if ((owner & ~OWNER_GIVEN) == me || owner == OWNER_NOBODY) return true;
    return (owner & OWNER_GIVEN) && is_stopped(OWNER_RING(owner));
}

bool shared_leave(void) {
    if (likely(!channel_is_stopped())) return false;
    stream_give_up();
    if (shared_is_on()) shared_abandon();
    return true;
}

/* While we did not have the turn another R-thread may have got the page. */
static bool came_meanwhile(struct thread *t, struct shared_at at, const struct shared_page *p) {
    if (!shared_owns(at)) return false;
    log_page(t, EV_ACQUIRE, at, p->version, UINT64_MAX, 0);
    return true;
}

void shared_acquire(struct thread *t, struct shared_at at, gaddr addr) {
    if (unlikely(shared_leave())) return;
    bool is_new = !pager;
    shared_start_pager(t);
    if (unlikely(is_new)) shared_stop_await_senders(t);
    uint64_t index = shared_index(at, 0);
    struct shared_page *p = &shared_tables()->pages[index];
    if (shared_owns(at)) return;
    await(index, true);
    while (!shared_owns(at)) {
        shared_stop_held(t);
        if (unlikely(came_meanwhile(t, at, p))) break;
        uint64_t owner = owner_of(p, index);
        if (unlikely(shared_leave())) break; /* the owner need not answer any more */
        if (!owner) {
            if (becomes_ours(p, 0)) {
                take_around(t, at, addr);
                take(t, at, addr, p, UINT64_MAX); /* the one that is needed comes last */
            }
        } else if (owner == OWNER_NOBODY && becomes_values(t, p)) {
            if (values_will_do(p)) break;
        } else if (is_free(owner)) {
            if (becomes_ours(p, owner)) take(t, at, addr, p, UINT64_MAX);
        } else if (owner == OWNER_VALUES) {
            if (t->access_will_do && values_will_do(p)) break;
            if (values_take_back(p, me)) take_values(t, at, p, addr);
        } else {
            enum fate fate = fate_of(owner & ~OWNER_GIVEN);
            if (fate == ALIVE) {
                wait_for(t, p, owner, index);
                came_meanwhile(t, at, p);
            } else {
                inherit(t, at, p, owner, fate, addr);
            }
        }
    }
    await(index, false);
    stream_commit();
}

/* ---- giving ---- */

static uint64_t who_asked(uint64_t request) {
    struct shared_sharer *s = &shared_tables()->sharers[REQUEST_RING(request)];
    uint64_t stream = __atomic_load_n(&s->stream, __ATOMIC_ACQUIRE);
    return ((stream + 1) & 0x7fffffff) == REQUEST_STREAM(request) ? OWNER(stream, REQUEST_RING(request)) : 0;
}

static struct shared_at at_index(uint64_t index) {
    const struct shared_chunk *c = &shared_tables()->chunks[index / SHARED_CHUNK_PAGES];
    return (struct shared_at){c->object, c->number * SHARED_CHUNK_PAGES + index % SHARED_CHUNK_PAGES};
}

/* The page is next's now. */
static void release(struct thread *t, uint64_t index, uint64_t next, uint8_t flags) {
    struct shared_page *p = &shared_tables()->pages[index];
    struct shared_at at = at_index(index);
    left_released(at);
    if (unlikely(frozen_any)) frozen_end(at);
    shared_give(at);
    log_page(t, EV_RELEASE, at, p->version, UINT64_MAX, flags);
    stream_commit();
    pass(p, next);
}

static void give(struct thread *t, uint64_t index, uint64_t to, uint8_t flags) {
    struct shared_page *p = &shared_tables()->pages[index];
    bool is_hot = values_is_hot(p, now_ns());
    if (is_hot) values_begin(p);
    release(t, index, is_hot ? OWNER_VALUES : to | OWNER_GIVEN, flags);
}

/* Who waits for another page itself, and lets somebody else go first, does not use the others meanwhile. Nobody has to ask for
 * them; what nobody took is back at the first touch. */
static void give_set_up(struct thread *t, uint8_t flags) {
    for (uint32_t i = 0; i < SET; i++) {
        uint64_t index = set[i] - 1ull;
        if (!set[i]) continue;
        set[i] = 0;
        if (owner_of(&shared_tables()->pages[index], index) == me && shared_owns(at_index(index)))
            release(t, index, OWNER_NOBODY, flags);
    }
}

/* Pages behind one that was asked for go along if they have been here since they were made, untouched for all we know. */
static void give_around(struct thread *t, uint64_t index, uint64_t to, uint8_t flags) {
    for (uint64_t i = index + 1; i % AROUND; i++) {
        struct shared_page *p = &shared_tables()->pages[i];
        if (p->since_ns || p->owner || owner_of(p, i) != me || !shared_owns(at_index(i))) return;
        give(t, i, to, flags);
    }
}

/* We were given the page for a request that had been met otherwise: on with it, it was never here. */
static void pass_on(uint64_t index, uint64_t to) {
    struct shared_page *p = &shared_tables()->pages[index];
    uint64_t given = me | OWNER_GIVEN;
    if (__atomic_compare_exchange_n(&p->owner, &given, to | OWNER_GIVEN, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        announce(p);
}

/* Gives pages back to outsiders. */
static void give_back(struct thread *t, uint8_t flags, uint64_t now, bool computing) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n_visiting; i++) {
        uint64_t index = visiting[i] - 1ull;
        const struct shared_page *p = &shared_tables()->pages[index];
        if (owner_of(p, index) != me || !shared_owns(at_index(index))) continue;
        if (now - p->since_ns < (computing ? LEASE_COMPUTING_NS : LEASE_WAITING_NS))
            visiting[kept++] = visiting[i];
        else
            release(t, index, OWNER_VALUES, flags);
    }
    n_visiting = kept;
}

void shared_return_to_outsiders(struct thread *t, uint8_t flags) {
    if (unlikely(n_visiting != 0)) give_back(t, flags, UINT64_MAX, false);
    if (unlikely(frozen_any)) frozen_end_all();
}

bool shared_is_wanted(void) {
    if (!me || unlikely(!shared_is_on())) return false;
    if (unlikely(n_visiting != 0)) return true;
    if (unlikely(shared_stop_is_due())) return true;
    uint64_t bell = __atomic_load_n(&self->bell, __ATOMIC_ACQUIRE) + 1ull; /* rings behind each request */
    if (likely(__atomic_load_n(&quiet_at, __ATOMIC_RELAXED) == bell)) return false;
    for (int i = 0; i < SHARED_REQUESTS; i++)
        if (__atomic_load_n(&self->request[i], __ATOMIC_ACQUIRE)) return true;
    __atomic_store_n(&quiet_at, bell, __ATOMIC_RELAXED);
    return false;
}

static bool is_due(const struct shared_page *p, uint64_t request, uint64_t now, bool computing) {
    uint64_t stay = now - last_take_ns;
    if (now - p->since_ns >= LEASE_MOST_NS) return true;
    if (computing) return stay >= LEASE_COMPUTING_NS;
    bool older = shared_tables()->sharers[REQUEST_RING(request)].session_ns < self->session_ns;
    return stay >= LEASE_WAITING_NS && (!n_awaited || older);
}

/* Whether the R-thread that computes has had a page for long enough. */
static bool is_any_due(void) {
    uint64_t now = now_ns();
    if (unlikely(shared_stop_is_due())) return true;
    if (n_visiting && now - last_take_ns >= LEASE_COMPUTING_NS) return true;
    for (int i = 0; i < SHARED_REQUESTS; i++) {
        uint64_t request = __atomic_load_n(&self->request[i], __ATOMIC_ACQUIRE);
        if (request && is_due(&shared_tables()->pages[REQUEST_INDEX(request)], request, now, true)) return true;
    }
    return false;
}

void shared_serve(struct thread *t, uint8_t flags, bool computing) {
    if (unlikely(shared_leave())) return;
    if (unlikely(shared_stop_is_due())) shared_stop_here(t, flags);
    uint64_t now = now_ns();
    bool gave = false;
    if (unlikely(n_visiting != 0)) give_back(t, flags, now, computing);
    for (int i = 0; i < SHARED_REQUESTS; i++) {
        uint64_t request = __atomic_load_n(&self->request[i], __ATOMIC_ACQUIRE);
        if (!request) continue;
        uint64_t index = REQUEST_INDEX(request), to = who_asked(request);
        struct shared_page *p = &shared_tables()->pages[index];
        uint64_t owner = owner_of(p, index);
        if (owner == (me | OWNER_GIVEN) && is_awaited(index)) continue; /* not here yet */
        if (to && is_stopped(REQUEST_RING(request))) to = 0;            /* it will ask again */
        if (owner == me && to && !is_due(p, request, now, computing)) continue;
        __atomic_store_n(&self->request[i], 0, __ATOMIC_RELEASE);
        if (owner == me && to) {
            give(t, index, to, flags);
            give_around(t, index, to, flags);
            gave = true;
        }
        if (owner == (me | OWNER_GIVEN) && to) pass_on(index, to);
    }
    if (gave && !computing && n_awaited) give_set_up(t, flags);
    if (gave && (computing || !n_awaited)) self->session_ns = now; /* back to the end of the queue */
}

static void log_release(struct thread *t, struct shared_at at, uint8_t flags) {
    log_page(t, EV_RELEASE, at, shared_tables()->pages[shared_index(at, 0)].version, UINT64_MAX, flags);
}

static void leave(struct thread *t, struct shared_at at, uint8_t flags) { left_released(at); }

static void give_up(struct thread *t, struct shared_at at, uint8_t flags) {
    struct shared_page *p = &shared_tables()->pages[shared_index(at, 0)];
    pass(p, OWNER_NOBODY);
}

void shared_release_all(struct thread *t, uint8_t flags) {
    shared_each_owned(t, flags, leave);
    shared_close_all();
    shared_each_owned(t, flags, log_release);
    stream_commit();
    shared_each_owned(t, flags, give_up); /* from here on others may have them */
    shared_disown_all();
}

struct shared_sharer *shared_self(void) {
    return me ? self : NULL;
}

void shared_claim(uint64_t object, uint64_t page, uint64_t n) {
    enrol();
    for (uint64_t i = page - page % SHARED_CHUNK_PAGES; i < page + n; i += SHARED_CHUNK_PAGES)
        shared_index((struct shared_at){object, i}, me);
}

bool shared_claim_file(struct thread *t, uint64_t object, uint64_t bytes) {
    uint64_t n = PAGE_UP(bytes) / PAGE_SIZE;
    if (bytes > CLAIM_MOST) return false;
    shared_start_pager(t); /* others may ask from now on */
    bool all = true;
    for (uint64_t i = 0; i < n; i += SHARED_CHUNK_PAGES) {
        uint64_t index = shared_index((struct shared_at){object, i}, me);
        all &= shared_tables()->chunks[index / SHARED_CHUNK_PAGES].first == me;
    }
    return all; /* if not: what is ours already is taken page by page */
}

void shared_ended(void) {
    if (!me) return;
    __atomic_store_n(&has_left, true, __ATOMIC_SEQ_CST);
    shared_set_ended(OWNER_STREAM(me));
    __atomic_store_n(&self->ended, 1, __ATOMIC_RELEASE);
}

bool shared_is_dead(uint32_t tid) {
    if (SYS(kill, tid, 0) == -ESRCH) return true;
    for (uint32_t i = 0; i < CHANNEL_RINGS; i++) {
        struct shared_sharer *s = &shared_tables()->sharers[i];
        if (s->pid == tid && (__atomic_load_n(&s->life, __ATOMIC_ACQUIRE) & FUTEX_OWNER_DIED)) return true;
    }
    return false;
}

/* ---- the pager ---- */

/* The kernel tells everybody when the pager is no more, however it ended. */
static struct {
    uint64_t next;
    int64_t offset;
    uint64_t pending;
} robust;
static uint64_t robust_entry;

static void show_life(struct thread *t) {
    robust_entry = (uint64_t)&robust;
    robust.next = (uint64_t)&robust_entry;
    robust.offset = (int64_t)((uint64_t)&self->life - (uint64_t)&robust_entry);
    robust.pending = 0;
    SYS(set_robust_list, &robust, sizeof robust);
    __atomic_store_n(&self->life, (uint32_t)t->tid, __ATOMIC_RELEASE);
}

static void pager_main(struct thread *t) {
    fds_close_all();
    SYS(prctl, 29 /* PR_SET_TIMERSLACK */, 1, 0, 0, 0);
    show_life(t);
    __atomic_store_n(&pager_is_up, 1, __ATOMIC_RELEASE);
    SYS(futex, &pager_is_up, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
    while (!__atomic_load_n(&pager_ends, __ATOMIC_ACQUIRE)) {
        uint32_t seen = __atomic_load_n(&self->bell, __ATOMIC_SEQ_CST);
        if (!shared_is_wanted()) {
            __atomic_store_n(&self->sleeps, 1, __ATOMIC_SEQ_CST);
            if (!shared_is_wanted()) wait_on(&self->bell, seen, 1000000000);
            while (__atomic_load_n(&has_left, __ATOMIC_SEQ_CST)) SYS(pause); /* the process ends */
            __atomic_store_n(&self->sleeps, 0, __ATOMIC_SEQ_CST);
            continue;
        }
        if (order_try(t)) {
            shared_serve(t, EVF_AFTER, false);
            order_drop(t);
        } else if (is_any_due()) {
            order_interrupt(t);
        }
        if (shared_is_wanted()) wait_on(&self->bell, __atomic_load_n(&self->bell, __ATOMIC_SEQ_CST), LOOK_NS);
    }
    SYS(set_robust_list, 0, sizeof robust); /* we are not dead */
    thread_exit(t, 0);
}

void shared_start_pager(struct thread *t) {
    if (pager) return;
    enrol();
    struct thread *child = thread_new(t->process, t->files);
    if (!child) die("no memory for the pager of shared memory");
    child->number = ORDER_PAGER;
    child->service = pager_main;
    uint64_t flags = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    uint64_t args[6] = {flags, child->tb->rt_sp}, all = ~0ull, mask;
    SYS(rt_sigprocmask, 2 /* SIG_SETMASK */, &all, &mask, 8);
    pager = child;
    pager_is_up = 0;
    pager_ends = false;
    order_add(child);
    long ret = clone_thread(__NR_clone, args, child);
    SYS(rt_sigprocmask, 2, &mask, 0, 8);
    if (ret < 0) die("the pager of shared memory cannot be started (error %ld)", -ret);
    while (!__atomic_load_n(&pager_is_up, __ATOMIC_ACQUIRE)) SYS(futex, &pager_is_up, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
}

bool shared_end_pager(void) {
    if (!pager) return false;
    int tid = pager->tid;
    order_remove(pager);
    __atomic_store_n(&pager_ends, true, __ATOMIC_RELEASE);
    while (SYS(tgkill, (int)self->pid, tid, 0) == 0) {
        __atomic_add_fetch(&self->bell, 1, __ATOMIC_SEQ_CST);
        SYS(futex, &self->bell, FUTEX_WAKE, INT32_MAX, 0, 0, 0);
        SYS(sched_yield);
    }
    pager = NULL;
    return true;
}

void shared_forget_pager(void) {
    pager = NULL;
    me = 0;
    memset(awaited, 0, sizeof awaited);
    n_awaited = n_visiting = 0;
    told_end = 0;
}

/* ---- files ---- */

#define TMPFS_MAGIC_ 0x01021994

bool shared_is_in_memory(int fd) {
    uint64_t fs[16];
    return fd < 0 || (SYS(fstatfs, fd, fs) == 0 && fs[0] == TMPFS_MAGIC_);
}

/* The mapping can be written, now or after mprotect. */
static bool is_writable(int fd) { return (SYS(fcntl, fd, F_GETFL) & O_ACCMODE) == O_RDWR; }

bool shared_tracks(int fd, uint64_t object) {
    if (!shared_is_on()) return false;
    return is_writable(fd) || shared_is_in_memory(fd) || shared_object_is_known(object);
}

/* A small file that has a name and was opened for writing, as by who makes it if it is not there, but is mapped for reading only
 * (dconf tells programs so that settings have changed). */
bool shared_is_for_outsiders(int fd, const struct mapping *m) {
    struct stat st;
    if (fd < 0 || (m->prot & PROT_WRITE) || m->file.size > PAGE_SIZE || !is_writable(fd)) return false;
    return SYS(fstat, fd, &st) == 0 && st.st_ino == m->file.ino && st.st_nlink;
}

static struct shared_page *page_for_outsiders(uint64_t object) {
    return &shared_tables()->pages[shared_index((struct shared_at){object, 0}, 0)];
}

void shared_leave_to_outsiders(uint64_t object) {
    enrol();
    struct shared_page *p = page_for_outsiders(object);
    uint64_t nobody = 0;
    p->outsiders = 1;
    __atomic_compare_exchange_n(&p->owner, &nobody, OWNER_VALUES, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void shared_keep_from_outsiders(uint64_t object) {
    struct shared_page *p = page_for_outsiders(object);
    if (likely(!p->outsiders)) return;
    p->outsiders = 0;
    frozen_end((struct shared_at){object, 0});
}

void shared_becomes_writable(gaddr start, gaddr end) {
    struct mapping m;
    if (end <= start || !shared_may_be(start, end - start)) return;
    for (size_t i = 0; aspace_nth(i, &m); i++)
        if (m.tracked && m.start < end && m.end > start) shared_keep_from_outsiders(m.object);
}
