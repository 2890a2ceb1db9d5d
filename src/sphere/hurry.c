#include "sphere/hurry.h"

#include "inproc/str.h"
#include "inproc/sys.h"

/* One of the signals that the kernel never blocks for us and that always come to our handler (SIGNALS_SYNC); the one that
 * programs send to each other least. The code is none that the kernel or libc use. */
#define KICK_SIGNAL 8 /* SIGFPE */
#define KICK_CODE (-0x5250)

#define MEMBARRIER_PRIVATE_EXPEDITED 8
#define MEMBARRIER_REGISTER_PRIVATE_EXPEDITED 16

bool hurry_is_kick(const struct siginfo_raw *info) { return info->signo == KICK_SIGNAL && info->code == KICK_CODE; }

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

/* A late thread first finds `pending` set: then it is either seen as idle below or turns around in front of its call
 * (gate.S). So the signal never meets a thread that waits in a call. */
void hurry_threads(uint64_t epoch) {
    struct thread *self = thread_self();
    bool any = false;
    for (struct thread *t = threads_first(); t; t = t->next) {
        if (t == self || !is_late(t, epoch)) continue;
        __atomic_store_n(&t->tb->pending, 1, __ATOMIC_RELEASE);
        any = true;
    }
    if (!any) return;
    barrier_everywhere();
    for (struct thread *t = threads_first(); t; t = t->next) {
        if (t == self || !is_late(t, epoch)) continue;
        struct siginfo_raw info = {.signo = KICK_SIGNAL, .code = KICK_CODE};
        SYS(rt_tgsigqueueinfo, t->tgid, t->tid, KICK_SIGNAL, &info);
    }
}
