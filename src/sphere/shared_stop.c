#include "sphere/shared_stop.h"

#include <linux/futex.h>
#include <linux/time_types.h>

#include "inproc/sys.h"
#include "recorder/order.h"
#include "sphere/channel.h"
#include "sphere/checkpoint.h"
#include "sphere/shared.h"
#include "sphere/signals.h"
#include "sphere/task_state.h"

enum { SIGSTOP_ = 19, SIGTSTP_ = 20, SIGTTIN_ = 21, SIGTTOU_ = 22 };
enum stopping { STOP_NONE, STOP_ASKED, STOP_READY, STOP_SENT }; /* shared_sharer.stopping */

#define READY_LOOKS 500     /* of LOOK_NS each */
#define PENDING_LOOKS 5000  /* of 0.1 ms each */
#define SENDING_LOOKS 10000 /* the same */
#define LOOK_NS 20000000l   /* how often one who waits looks whether the other one lives */

static void set(uint32_t *state, enum stopping to) {
    __atomic_store_n(state, to, __ATOMIC_SEQ_CST);
    SYS(futex, state, FUTEX_WAKE, INT32_MAX, 0, 0, 0);
}

static void wait_while(uint32_t *state, enum stopping is) {
    struct __kernel_timespec timeout = {0, LOOK_NS};
    SYS(futex, state, FUTEX_WAIT, is, &timeout, 0, 0);
}

static bool change(struct shared_sharer *s, enum stopping from, enum stopping to) {
    uint32_t expected = from;
    return __atomic_compare_exchange_n(&s->stopping, &expected, to, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* ---- who sends ---- */

static bool stops(uint64_t signo) { return signo >= SIGSTOP_ && signo <= SIGTTOU_; }

bool shared_stop_is_sent(uint64_t nr, const uint64_t a[6], int *pid) {
    *pid = (int)a[0];
    switch (nr) {
    case __NR_kill:
    case __NR_rt_sigqueueinfo: return stops(a[1]);
    case __NR_tkill: /* the first thread's number is the process's; others are rare for such signals */
        return stops(a[1]);
    case __NR_tgkill:
    case __NR_rt_tgsigqueueinfo: return stops(a[2]);
    default: return false;
    }
}

static bool is_meant(const struct shared_sharer *s, int pid) {
    if (!s->pid || pid == -1) return s->pid != 0;
    if (pid > 0) return (int)s->pid == pid;
    long group = pid ? -pid : SYS(getpgid, 0);
    return SYS(getpgid, s->pid) == group;
}

static bool is_halted(const struct shared_sharer *s) {
    char state = task_state((int)s->pid);
    return state == 'T' || state == 't' || state == 'Z' || state == 'X';
}

static void a_moment(void) {
    struct __kernel_timespec moment = {0, 100000};
    SYS(nanosleep, &moment, 0);
}

/* Who was continued just now has not noticed yet that it is stopped no more: it would run when the next signal comes. */
static void await_awake(const struct shared_sharer *s) {
    while (__atomic_load_n(&s->stopped, __ATOMIC_ACQUIRE) && shared_sharer_lives(s) && !is_halted(s)) a_moment();
}

static bool can_answer(const struct shared_sharer *s) {
    return shared_sharer_lives(s) && !__atomic_load_n(&s->stopped, __ATOMIC_ACQUIRE);
}

/* Asks s, and waits until it has no page and does not run. False: there is nothing to wait for. */
static bool make_ready(struct shared_sharer *s) {
    await_awake(s);
    if (!can_answer(s) || !change(s, STOP_NONE, STOP_ASKED)) return false;
    shared_ring(s);
    while (__atomic_load_n(&s->stopping, __ATOMIC_ACQUIRE) == STOP_ASKED && shared_sharer_lives(s) && !is_halted(s) &&
           !channel_is_stopped())
        wait_while(&s->stopping, STOP_ASKED);
    return !change(s, STOP_ASKED, STOP_NONE);
}

static uint64_t
    asked[CHANNEL_RINGS / 64]; /* of the one call that is under way: it keeps the turn, but for the asking */

static void sending_begins(struct shared_tables *tables) { __atomic_add_fetch(&tables->stopping, 1, __ATOMIC_SEQ_CST); }

static void sending_ends(struct shared_tables *tables) {
    uint64_t n = __atomic_load_n(&tables->stopping, __ATOMIC_RELAXED);
    while (n && !__atomic_compare_exchange_n(&tables->stopping, &n, n - 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
    }
}

void shared_stop_before(struct thread *t, int pid) {
    struct shared_tables *tables = shared_tables();
    sending_begins(tables);
    if (unlikely(shared_leave())) return; /* nobody has pages any more that others would wait for */
    for (uint32_t i = 0; i < CHANNEL_RINGS; i++) {
        struct shared_sharer *s = &tables->sharers[i];
        if (s == shared_self() || !is_meant(s, pid)) continue;
        checkpoint_park(t, true);
        order_enter_call(t, true);
        if (make_ready(s)) asked[i / 64] |= 1ull << (i % 64);
        order_leave_call(t);
    }
    struct shared_sharer *self = shared_self();
    if (!self || !is_meant(self, pid) || shared_leave()) return;
    shared_release_all(t, EVF_AT_GATE);
    __atomic_store_n(&self->stopped, 1, __ATOMIC_RELEASE);
}

/* Once one thread has stopped, no other one gets out of the kernel. Signals that are handled or blocked stop nobody. */
static void await_stopped(const struct shared_sharer *s) {
    for (int i = 0; i < 250 && !is_halted(s); i++) a_moment();
}

void shared_stop_after(void) {
    sending_ends(shared_tables());
    for (uint32_t i = 0; i < CHANNEL_RINGS; i++) {
        if (!(asked[i / 64] >> (i % 64) & 1)) continue;
        struct shared_sharer *s = &shared_tables()->sharers[i];
        await_stopped(s);
        set(&s->stopping, STOP_SENT);
        asked[i / 64] &= ~(1ull << (i % 64));
    }
    if (shared_self()) __atomic_store_n(&shared_self()->stopped, 0, __ATOMIC_RELEASE);
}

/* ---- who stops ---- */

bool shared_stop_is_due(void) {
    return shared_is_on() && shared_self() && __atomic_load_n(&shared_self()->stopping, __ATOMIC_ACQUIRE) == STOP_ASKED;
}

/* SIGSTOP is there, but the thread that will take it does not run yet: until then no other one stops, and none must go on. */
static void await_signal(const struct thread *t) {
    for (int i = 0; i < PENDING_LOOKS && task_pending(t->process->pid) >> (SIGSTOP_ - 1) & 1; i++) a_moment();
}

void shared_stop_here(struct thread *t, uint8_t flags) {
    struct shared_sharer *self = shared_self();
    shared_release_all(t, flags);
    __atomic_store_n(&self->stopped, 1, __ATOMIC_SEQ_CST);
    if (change(self, STOP_ASKED, STOP_READY)) {
        set(&self->stopping, STOP_READY);
        /* stopped here; if the sender has died meanwhile, nobody will say so */
        for (int i = 0; i < READY_LOOKS && __atomic_load_n(&self->stopping, __ATOMIC_ACQUIRE) == STOP_READY; i++)
            wait_while(&self->stopping, STOP_READY);
        await_signal(t);
        set(&self->stopping, STOP_NONE);
    }
    __atomic_store_n(&self->stopped, 0, __ATOMIC_RELEASE);
}

void shared_stop_await_senders(struct thread *t) {
    uint64_t *n = &shared_tables()->stopping;
    if (likely(!__atomic_load_n(n, __ATOMIC_SEQ_CST))) return;
    int i = 0;
    order_enter_call(t, true); /* the pager can answer */
    for (; i < SENDING_LOOKS && __atomic_load_n(n, __ATOMIC_SEQ_CST); i++) a_moment();
    if (i == SENDING_LOOKS) __atomic_store_n(n, 0, __ATOMIC_SEQ_CST); /* somebody was killed on the way */
    order_leave_call(t);
}

/* Those that would have stopped the process by now. */
static uint64_t stops_held(const struct thread *t) {
    uint64_t pending = 0, held = 0;
    if (t->process->catches_all || SYS(rt_sigpending, &pending, 8) < 0) return 0;
    for (int signo = SIGTSTP_; signo <= SIGTTOU_; signo++)
        if (t->process->action[signo].handler == 0 /* SIG_DFL */) held |= SIG_BIT(signo);
    return pending & held & ~t->sigmask;
}

void shared_stop_held(struct thread *t) {
    uint64_t held = stops_held(t), mask;
    if (likely(!held)) return;
    struct shared_sharer *self = shared_self();
    __atomic_store_n(&self->stopped, 1, __ATOMIC_SEQ_CST);
    order_enter_call(t, true);
    SYS(rt_sigprocmask, 1 /* SIG_UNBLOCK */, &held, &mask, 8); /* stopped here */
    SYS(rt_sigprocmask, 2 /* SIG_SETMASK */, &mask, 0, 8);
    __atomic_store_n(&self->stopped, 0, __ATOMIC_RELEASE);
    order_leave_call(t);
}
