/* Signals that the kernel cannot block for us, because faults raise them, and that somebody has sent while the program blocks them.
 * Between calls they are kept here, in thread.pending. In a call that may see them, nothing of the thread can fault: there the kernel
 * blocks what the program blocks, and has them back. */
#include "inproc/sys.h"
#include "sphere/gate.h"
#include "sphere/hurry.h"
#include "sphere/mode.h"
#include "sphere/signals.h"

#define SIG_BLOCK_ 0
#define SIG_UNBLOCK_ 1
#define SIG_SETMASK_ 2
#define SI_TKILL_ (-6)

bool signals_watched;

bool signals_is_held(const struct thread *t, const struct pending_signal *s) {
    int signo = s->info.signo;
    return !s->is_fault && signo <= 64 && (SIGNALS_SYNC & t->sigmask & SIG_BIT(signo));
}

uint64_t signals_held(const struct thread *t) {
    uint64_t set = 0;
    for (int i = 0; i < t->n_pending; i++)
        if (signals_is_held(t, &t->pending[i])) set |= SIG_BIT(t->pending[i].info.signo);
    return set;
}

/* Sent to one thread, as far as that can be told. */
static bool is_private(const struct pending_signal *s) { return s->info.code == SI_TKILL_; }

uint64_t signals_held_for(const struct thread *t, bool thread) {
    uint64_t set = 0;
    for (int i = 0; i < t->n_pending; i++)
        if (signals_is_held(t, &t->pending[i]) && is_private(&t->pending[i]) == thread)
            set |= SIG_BIT(t->pending[i].info.signo);
    return set;
}

static void give_back(struct thread *t, uint64_t set) {
    int pid = (int)SYS(getpid), tid = (int)SYS(gettid), kept = 0;
    for (int i = 0; i < t->n_pending; i++) {
        struct pending_signal *s = &t->pending[i];
        if (!signals_is_held(t, s) || !(set & SIG_BIT(s->info.signo)) ||
            SYS(rt_tgsigqueueinfo, pid, tid, s->info.signo, &s->info) != 0)
            t->pending[kept++] = *s;
    }
    t->n_pending = kept;
}

void signals_drop_held(struct thread *t, uint64_t set) {
    uint64_t all = ~0ull, mask;
    int kept = 0;
    if (likely(!(signals_held(t) & set))) return;
    SYS(rt_sigprocmask, SIG_BLOCK_, &all, &mask, 8); /* another one may come, even of these */
    for (int i = 0; i < t->n_pending; i++)
        if (!signals_is_held(t, &t->pending[i]) || !(set & SIG_BIT(t->pending[i].info.signo)))
            t->pending[kept++] = t->pending[i];
    t->n_pending = kept;
    SYS(rt_sigprocmask, SIG_SETMASK_, &mask, 0, 8);
}

/* Nothing has come but what is held, and the call was to wait for that. */
static bool came_for_it(const struct thread *t) {
    if (!t->n_pending) return false;
    for (int i = 0; i < t->n_pending; i++)
        if (!signals_is_held(t, &t->pending[i])) return false;
    return true;
}

long signals_issue_waiting(long nr, const uint64_t a[6]) {
    struct thread *t = thread_self();
    uint64_t sync = t->sigmask & SIGNALS_SYNC, kick = SIG_BIT(HURRY_SIGNAL), all = ~0ull, before;
    if (likely(!sync) || !the_mode->kernel_signals) return gate_issue(nr, a);
    SYS(rt_sigprocmask, SIG_BLOCK_, &all, &before, 8);
    if (!(signals_held(t) & kick)) sync &= ~kick; /* who waits has to hear of kicks */
    give_back(t, sync);
    before |= sync;
    SYS(rt_sigprocmask, SIG_SETMASK_, &before, 0, 8);
    long ret = gate_issue(nr, a);
    if (sync & kick) { /* one may have been swallowed */
        hurry_swallowed(t->tb, HURRY_SIGNAL);
        t->tb->pending = 1;
    }
    SYS(rt_sigprocmask, SIG_UNBLOCK_, &sync, 0, 8); /* what nobody has taken comes to us again */
    return ret;
}

long signals_issue(long nr, const uint64_t a[6]) {
    long ret = signals_issue_waiting(nr, a);
    return unlikely(ret == -EINTR) && came_for_it(thread_self()) ? GATE_ABORTED : ret;
}

uint64_t signals_to_wait_with(const struct thread *t, uint64_t set) {
    if (likely(!(t->sigmask & SIGNALS_SYNC))) return set & ~SIGNALS_SYNC;
    return set & (~SIG_BIT(HURRY_SIGNAL) | signals_held(t));
}
