#include "sphere/hurry.h"

#include "inproc/str.h"
#include "inproc/sys.h"

/* One of the signals that the kernel never blocks for us and that always come to our handler (SIGNALS_SYNC); the one that
 * programs send to each other, or raise, least. The code is none that the kernel or libc use. */
#define KICK_SIGNAL HURRY_SIGNAL
#define KICK_CODE (-0x5250)
#define SIGCONT_ 18

#define MEMBARRIER_PRIVATE_EXPEDITED 8
#define MEMBARRIER_REGISTER_PRIVATE_EXPEDITED 16

bool hurry_is_kick(const struct siginfo_raw *info) {
    return info->code == KICK_CODE && (info->signo == KICK_SIGNAL || info->signo == SIGCONT_);
}

bool hurry_may_be_kick(const struct siginfo_raw *info) {
    return info->signo == KICK_SIGNAL && info->code == 0 && info->w[0] == 0;
}

/* The kernel keeps one signal of a kind: a fault of the same kind may have swallowed a kick. */
void hurry_swallowed(struct tblock *tb, int signo) {
    if (signo == KICK_SIGNAL) tb->kick = 0;
}

/* `kick` names the process that kicks, like a lock. */
static bool begin_kick(struct thread *t) {
    uint32_t none = 0, self = lock_own_id ? lock_own_id() : 1;
    return __atomic_compare_exchange_n(&t->tb->kick, &none, self, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static bool is_late(const struct thread *t, uint64_t epoch) {
    return __atomic_load_n(&t->in_use, __ATOMIC_ACQUIRE) && __atomic_load_n(&t->tid, __ATOMIC_ACQUIRE) &&
           __atomic_load_n(&t->tb->epoch, __ATOMIC_ACQUIRE) < epoch;
}

/* Every processor that runs the program has passed a memory barrier. */
static void barrier_everywhere(void) {
    if (SYS(membarrier, MEMBARRIER_PRIVATE_EXPEDITED, 0, 0) == 0) return;
    SYS(membarrier, MEMBARRIER_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    SYS(membarrier, MEMBARRIER_PRIVATE_EXPEDITED, 0, 0);
}

static void cancel(struct thread *t) { __atomic_store_n(&t->tb->kick, 0, __ATOMIC_RELEASE); }

static void send(struct thread *t) {
    struct siginfo_raw info = {.signo = KICK_SIGNAL, .code = KICK_CODE};
    uint64_t held = __atomic_load_n(&t->tb->epoch, __ATOMIC_ACQUIRE);
    if (SYS(rt_tgsigqueueinfo, t->tgid, t->tid, KICK_SIGNAL, &info) != -ESRCH) return;
    /* it is gone: a process that shared our memory was killed */
    __atomic_compare_exchange_n(&t->tb->epoch, &held, EPOCH_IDLE, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    cancel(t);
}

/* Two threads, each of which writes one word and reads the other's: we `kick` and then `epoch`, the other `epoch` and then
 * `kick` (cache_idle). Either we see that it is idle and let it be, or it sees the kick and waits for it before its call. */
void hurry_threads(uint64_t epoch) {
    struct thread *self = thread_self();
    struct thread *chosen[16];
    size_t n = 0;
    for (struct thread *t = threads_first(); t && n < ARRAY_LEN(chosen); t = t->next) {
        if (t != self && is_late(t, epoch) && begin_kick(t)) chosen[n++] = t;
    }
    if (!n) return;
    barrier_everywhere();
    for (size_t i = 0; i < n; i++) {
        if (is_late(chosen[i], epoch))
            send(chosen[i]);
        else
            cancel(chosen[i]);
    }
}

void hurry_thread(struct thread *t) {
    if (!is_late(t, EPOCH_IDLE) || !begin_kick(t)) return;
    barrier_everywhere();
    if (is_late(t, EPOCH_IDLE))
        send(t);
    else
        cancel(t);
}

void hurry_foreign(int tgid, int tid) {
    struct siginfo_raw info = {.signo = KICK_SIGNAL, .code = KICK_CODE};
    SYS(rt_tgsigqueueinfo, tgid, tid, KICK_SIGNAL, &info);
}

void hurry_stopped(int tgid) {
    struct siginfo_raw info = {.signo = SIGCONT_, .code = KICK_CODE};
    SYS(rt_sigqueueinfo, tgid, SIGCONT_, &info);
}

void hurry_hold(void) {
    uint64_t set = 1ull << (KICK_SIGNAL - 1);
    SYS(rt_sigprocmask, 0 /* SIG_BLOCK */, &set, 0, 8);
}
