#include "recorder/order.h"

#include <linux/futex.h>
#include <linux/time_types.h>

#include "engine/cache.h"
#include "inproc/lock.h"
#include "inproc/sys.h"
#include "recorder/processor.h"
#include "sphere/hurry.h"
#include "sphere/task_state.h"

#define SLICE_NS 1000000ull     /* how long a thread may compute while others wait */
#define STEAL_AFTER_NS 20000ull /* how long a call may take before its turn is stolen */
#define LOOK_LEAST_NS 25000ull  /* how often the first in the queue looks */
#define LOOK_MOST_NS 1000000ull
#define SECOND_LOOKS_NS 100000ull /* how soon the second notices that it has become the first, to begin with */
#define BUDGET_FOREVER (1ull << 62)

#define IN_CALL 0x80000000u /* in `owner`: its turn may be stolen, after a moment */
#define WAITS 0x40000000u   /* with IN_CALL: at once */
#define STATE (IN_CALL | WAITS)

static struct {
    uint32_t owner; /* number + 1 of the thread that has the turn, maybe with IN_CALL; 0: nobody */
    uint32_t calls; /* calls entered so far, by anybody: tells one long call from many short ones */
    uint32_t n_threads;
    bool has_pager; /* counted in n_threads */
    uint32_t n_waiting;
    bool overdue;                /* somebody has waited long enough */
    bool has_begun;              /* the owner knows that it is */
    struct thread *owner_thread; /* for preemption; a hint, valid under `lock` while the owner is not IN_CALL */
    struct thread *first, *last; /* queue of those who wait; under `lock` */
    struct lock lock;
    bool chaos;
    uint64_t random;
    uint64_t turns;    /* given so far */
    uint64_t began_ns; /* when the present turn was first seen by the one who waits */
} order;

void (*order_found_dead)(struct thread *dead, bool ran);

static uint64_t now_ns(void) {
    struct __kernel_timespec ts;
    SYS(clock_gettime, 1 /* CLOCK_MONOTONIC */, &ts);
    return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

/* A process that shares our memory can be killed alone. */
static bool is_dead(const struct thread *other, const struct thread *self) {
    return other && other != self && other->tgid && other->tgid != self->tgid && task_is_over(other->tgid);
}

static uint32_t id_of(const struct thread *t) { return t->number + 1; }

static uint64_t next_random(void) {
    order.random ^= order.random << 13;
    order.random ^= order.random >> 7;
    order.random ^= order.random << 17;
    return order.random;
}

void order_start(struct thread *self, bool chaos) {
    order.owner = id_of(self);
    order.owner_thread = self;
    order.n_threads = 1;
    order.has_pager = false;
    order.n_waiting = 0;
    order.first = order.last = NULL;
    order.lock.word = 0;
    order.chaos = chaos;
    if (chaos) SYS(getrandom, &order.random, sizeof order.random, 1 /* GRND_NONBLOCK */);
    order.random |= 1;
}

void order_add(struct thread *t) {
    lock_take(&order.lock);
    if (t->number == ORDER_PAGER) order.has_pager = true;
    __atomic_fetch_add(&order.n_threads, 1, __ATOMIC_RELAXED);
    lock_drop(&order.lock);
}

bool order_is_shared(void) { return __atomic_load_n(&order.n_threads, __ATOMIC_RELAXED) > 1; }

bool order_is_last(void) { return __atomic_load_n(&order.n_threads, __ATOMIC_RELAXED) == (order.has_pager ? 2u : 1u); }

/* ---- the queue; caller holds the lock ---- */

static void enqueue(struct thread *t) {
    t->turn_next = NULL;
    t->looks = true; /* it is awake */
    if (order.last)
        order.last->turn_next = t;
    else
        order.first = t;
    order.last = t;
    __atomic_fetch_add(&order.n_waiting, 1, __ATOMIC_SEQ_CST);
}

static void dequeue(struct thread *t) {
    struct thread **link = &order.first, *before = NULL;
    while (*link != t) {
        before = *link;
        link = &before->turn_next;
    }
    *link = t->turn_next;
    if (order.last == t) order.last = before;
    __atomic_fetch_sub(&order.n_waiting, 1, __ATOMIC_SEQ_CST);
}

/* Anew: who was killed may have been about to. */
static void count_waiting(void) {
    uint32_t n = 0;
    order.last = NULL;
    for (struct thread *t = order.first; t; t = t->turn_next) {
        order.last = t;
        n++;
    }
    __atomic_store_n(&order.n_waiting, n, __ATOMIC_SEQ_CST);
}

static bool is_queued(const struct thread *t) {
    for (const struct thread *w = order.first; w; w = w->turn_next)
        if (w == t) return true;
    return false;
}

void order_remove(struct thread *t) {
    lock_take(&order.lock);
    if (is_queued(t)) dequeue(t); /* killed while it waited */
    count_waiting();
    if (t->number == ORDER_PAGER) order.has_pager = false;
    __atomic_fetch_sub(&order.n_threads, 1, __ATOMIC_RELAXED);
    lock_drop(&order.lock);
}

static struct thread *choose(void) {
    struct thread *t = order.first;
    if (order.chaos && order.n_waiting > 1)
        for (uint64_t skip = next_random() % order.n_waiting; skip; skip--) t = t->turn_next;
    return t;
}

/* Who wakes up may come at once, in the place of the one who woke it, and wants the lock: so they are woken when it is dropped. */
struct sleepers {
    uint32_t *word[2]; /* their `turn`, which may be gone by then: nothing is read there */
    int n;
};

static void rouse(struct sleepers *s, struct thread *t) {
    __atomic_fetch_add(&t->turn, 1, __ATOMIC_RELEASE);
    s->word[s->n++] = &t->turn;
}

static void drop_and_wake(const struct sleepers *s) {
    lock_drop(&order.lock);
    for (int i = 0; i < s->n; i++) SYS(futex, s->word[i], FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

/* The first in the queue looks after the owner. Whoever is about to become the first wakes up by itself before long. */
static void rouse_first(struct sleepers *s) {
    if (order.first && !order.first->looks) rouse(s, order.first);
}

static void now_owns(struct thread *t) {
    order.owner_thread = t;
    order.has_begun = true;
    order.turns++;
    __atomic_store_n(&order.overdue, false, __ATOMIC_RELAXED);
}

/* Hands the turn, which the caller has, to t, who waits. */
static void hand_to(struct thread *t, struct sleepers *s) {
    dequeue(t);
    now_owns(t);
    order.has_begun = false;
    processor_bring(t);
    __atomic_store_n(&order.owner, id_of(t), __ATOMIC_RELEASE);
    rouse(s, t);
    rouse_first(s);
}

/* To whoever waits, or to nobody. */
static void hand_over(struct sleepers *s) {
    if (order.first)
        hand_to(choose(), s);
    else
        __atomic_store_n(&order.owner, 0, __ATOMIC_RELEASE);
}

/* A vfork child that has executed a program or has ended. Its parent may be stopped for a tracer, who waits for this one. */
static bool has_left(const struct thread *t) {
    return t->vforked && t->tells_leave && !__atomic_load_n(&t->not_left, __ATOMIC_ACQUIRE);
}

/* Who was killed had the turn: it is self's. From a vfork child its parent takes it, unless it is known that the child has left.
 * Caller holds the lock, which is dropped if this is true. */
static bool take_from_dead(struct thread *self) {
    struct thread *owner = order.owner_thread;
    uint32_t state = __atomic_load_n(&order.owner, __ATOMIC_ACQUIRE);
    if (!state || (state & IN_CALL)) return false;
    bool left = has_left(owner);
    if (!left && (owner->vforked || !is_dead(owner, self))) return false;
    bool ran = order.has_begun;
    if (is_queued(self)) dequeue(self);
    __atomic_store_n(&order.owner, id_of(self), __ATOMIC_RELEASE);
    now_owns(self);
    lock_drop(&order.lock);
    if (!left) order_found_dead(owner, ran);
    return true;
}

/* ---- waiting ---- */

/* Takes the turn if nobody has it, or from a call that has gone on since `calls` was seen. Caller holds the lock. */
static bool grab(struct thread *t, uint32_t seen_owner, uint32_t seen_calls, bool may_steal) {
    uint32_t owner = __atomic_load_n(&order.owner, __ATOMIC_ACQUIRE);
    bool stealable = (owner & WAITS) || (may_steal && (owner & IN_CALL) && owner == seen_owner &&
                                         __atomic_load_n(&order.calls, __ATOMIC_RELAXED) == seen_calls);
    if (owner != 0 && !stealable) return false;
    return __atomic_compare_exchange_n(&order.owner, &owner, id_of(t), false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static uint64_t slice(void) { return order.chaos ? 50000 + next_random() % (8 * SLICE_NS) : SLICE_NS; }

/* t is in the queue. Caller holds the lock, which is dropped. */
static void await_turn(struct thread *t) {
    uint32_t seen_owner = 0, seen_calls = 0;
    uint64_t look = LOOK_LEAST_NS, last_turns = 0, turns_as_second = 0, deadline = 0, call_since = 0;
    for (;;) {
        uint32_t word = __atomic_load_n(&t->turn, __ATOMIC_ACQUIRE);
        if ((__atomic_load_n(&order.owner, __ATOMIC_ACQUIRE) & ~STATE) ==
            id_of(t)) { /* handed over: out of the queue */
            order.has_begun = true;
            lock_drop(&order.lock);
            processor_release(t);
            return;
        }
        bool is_first = order.first == t, is_second = order.first && order.first->turn_next == t;
        if (!is_first && is_dead(order.first, t)) { /* it does not look after the owner any more */
            dequeue(order.first);
            count_waiting();
            continue;
        }
        struct __kernel_timespec timeout = {1, 0};
        struct thread *victim = NULL;
        if (is_second) {
            if (turns_as_second != order.turns) look = SECOND_LOOKS_NS;
            turns_as_second = order.turns;
            timeout = (struct __kernel_timespec){0, (long)look};
            look = MIN(look * 2, LOOK_MOST_NS);
        } else if (is_first) {
            uint64_t now = now_ns();
            uint32_t owner = __atomic_load_n(&order.owner, __ATOMIC_ACQUIRE);
            uint32_t calls = __atomic_load_n(&order.calls, __ATOMIC_RELAXED);
            if (last_turns != order.turns) {
                last_turns = order.turns;
                deadline = now + slice();
                look = LOOK_LEAST_NS;
            }
            bool same_call = (owner & IN_CALL) && owner == seen_owner && calls == seen_calls;
            if (!same_call) call_since = now;
            /* one who makes short calls all the time has to let others in, too */
            bool overdue = now >= deadline;
            if (grab(t, owner, calls, overdue || (same_call && now - call_since >= STEAL_AFTER_NS))) {
                dequeue(t);
                now_owns(t);
                struct sleepers s = {.n = 0};
                rouse_first(&s);
                drop_and_wake(&s);
                return;
            }
            seen_owner = owner;
            seen_calls = calls;
            if (overdue) __atomic_store_n(&order.overdue, true, __ATOMIC_RELAXED);
            if (!(owner & IN_CALL) && overdue) {
                if (take_from_dead(t)) return;
                victim = order.owner_thread;
                deadline = now + SLICE_NS;
            }
            look = (owner & IN_CALL) ? LOOK_LEAST_NS : MIN(look * 2, LOOK_MOST_NS);
            if (deadline > now) look = MIN(look, deadline - now + 1000);
            timeout = (struct __kernel_timespec){0, (long)look};
        }
        if (victim && victim != t) hurry_thread(victim);
        t->looks = is_first || is_second;
        lock_drop(&order.lock);
        SYS(futex, &t->turn, FUTEX_WAIT_PRIVATE, word, &timeout, 0, 0);
        lock_take(&order.lock);
    }
}

void order_take(struct thread *t) {
    lock_take(&order.lock);
    if (order.owner == id_of(t) || (!order.first && grab(t, 0, 0, false))) {
        now_owns(t);
        __atomic_store_n(&order.owner, id_of(t), __ATOMIC_RELEASE);
        lock_drop(&order.lock);
        return;
    }
    enqueue(t);
    await_turn(t);
}

bool order_try(struct thread *t) {
    static uint32_t seen_owner, seen_calls;
    lock_take(&order.lock);
    uint32_t owner = __atomic_load_n(&order.owner, __ATOMIC_ACQUIRE), calls = order.calls;
    bool same_call = (owner & IN_CALL) && owner == seen_owner && calls == seen_calls;
    seen_owner = owner;
    seen_calls = calls;
    bool got = (!owner || (owner & WAITS) || same_call) &&
               __atomic_compare_exchange_n(&order.owner, &owner, id_of(t), false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    if (got) now_owns(t);
    lock_drop(&order.lock);
    return got;
}

void order_interrupt(struct thread *t) {
    lock_take(&order.lock);
    uint32_t owner = __atomic_load_n(&order.owner, __ATOMIC_ACQUIRE);
    bool computes = owner && !(owner & IN_CALL);
    if (computes && take_from_dead(t)) {
        order_drop(t);
        return;
    }
    if (computes) hurry_thread(order.owner_thread);
    lock_drop(&order.lock);
}

void order_drop(struct thread *t) {
    struct sleepers s = {.n = 0};
    lock_take(&order.lock);
    hand_over(&s);
    drop_and_wake(&s);
}

/* ---- calls ---- */

void order_enter_call(struct thread *t, bool waits) {
    if (waits && __atomic_load_n(&order.n_waiting, __ATOMIC_RELAXED)) {
        order_drop(t);
        return;
    }
    __atomic_store_n(&order.calls, order.calls + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&order.owner, id_of(t) | IN_CALL | (waits ? WAITS : 0), __ATOMIC_SEQ_CST);
}

void order_leave_call(struct thread *t) {
    uint32_t owner = __atomic_load_n(&order.owner, __ATOMIC_ACQUIRE);
    if ((owner & ~STATE) == id_of(t) &&
        __atomic_compare_exchange_n(&order.owner, &owner, id_of(t), false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    order_take(t);
}

void order_reclaim(struct thread *parent, struct thread *child) {
    struct sleepers s = {.n = 0};
    lock_take(&order.lock);
    uint32_t owner = order.owner & ~STATE;
    if (owner == id_of(child)) hand_over(&s);
    drop_and_wake(&s);
}

/* ---- preemption ---- */

bool order_is_overdue(void) { return __atomic_load_n(&order.overdue, __ATOMIC_RELAXED); }

bool order_should_yield(struct thread *t) { return __atomic_load_n(&order.n_waiting, __ATOMIC_RELAXED) > 0; }

/* t queues before anybody else can run, so that two who yield all the time take turns. */
void order_yield(struct thread *t) {
    lock_take(&order.lock);
    if (!order.first) {
        lock_drop(&order.lock);
        return;
    }
    struct thread *next = choose();
    struct sleepers s = {.n = 0};
    enqueue(t);
    hand_to(next, &s);
    drop_and_wake(&s);
    lock_take(&order.lock);
    await_turn(t);
}

uint64_t order_budget(struct thread *t) {
    if (!order.chaos || !order_is_shared()) return BUDGET_FOREVER;
    return 1ull << (next_random() % 21); /* from every tick to a million */
}
