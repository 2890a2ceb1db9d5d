#include "sphere/gate.h"

#include "ckpt/rt/track.h"
#include "inproc/fmt.h"
#include "inproc/sys.h"
#include "sphere/code_watch.h"
#include "sphere/legacy.h"
#include "sphere/signals.h"
#include "sphere/sys/model.h"
#include "sphere/traced.h"

#define PIECE 64 /* of a string: divides a page, and most paths are no longer */

long guest_read_string(char *to, gaddr from, size_t cap) {
    size_t n = 0;
    while (n < cap) {
        size_t chunk = MIN(cap - n, PIECE - ((from + n) & (PIECE - 1)));
        if (!guest_read(to + n, from + n, chunk)) return -EFAULT;
        for (size_t i = 0; i < chunk; i++)
            if (to[n + i] == '\0') return (long)(n + i);
        n += chunk;
    }
    return -ENAMETOOLONG;
}

void gate_args(const struct tblock *t, uint64_t a[6]) {
    a[0] = t->gpr[RDI];
    a[1] = t->gpr[RSI];
    a[2] = t->gpr[RDX];
    a[3] = t->gpr[R10];
    a[4] = t->gpr[R8];
    a[5] = t->gpr[R9];
}

long gate_syscall(long nr, const uint64_t a[6]) {
    return unlikely(signals_watched) ? signals_issue(nr, a) : gate_issue(nr, a);
}

long gate_forward(struct tblock *t) {
    uint64_t a[6];
    gate_args(t, a);
    return gate_syscall((long)t->gpr[RAX], a);
}

void gate_retry(struct tblock *t, gaddr next) {
    if (unlikely(t->thread->legacy.under_way))
        legacy_retry(t);
    else
        t->pc = next - 2;
}

void gate_finish(struct tblock *t, gaddr next, uint64_t flags, long ret) {
    t->gpr[RAX] = (uint64_t)ret;
    t->gpr[RCX] = next;
    t->gpr[R11] = flags;
    if (unlikely(t->thread->legacy.under_way)) legacy_done(t);
}

static void aborted(struct tblock *t, uint64_t nr, gaddr next) {
    gate_retry(t, next);
    if (traced_may(t->thread)) traced_aborted(t->thread, nr);
}

static bool filters_allow(struct tblock *t, uint64_t *nr, uint64_t a[6], gaddr next, uint64_t flags) {
    long verdict = seccomp_apply(t, nr, a);
    if (verdict == SECCOMP_ALLOWED) return true;
    if (verdict == SECCOMP_DELIVERED) return false;
    if (verdict == SECCOMP_ABORTED) {
        aborted(t, *nr, next);
        return false;
    }
    gate_finish(t, next, flags, verdict);
    if (traced_may(t->thread)) traced_after_call(t->thread, *nr);
    return false;
}

void gate_on_syscall(struct tblock *t) {
    uint64_t nr = t->gpr[RAX];
    uint64_t a[6];
    gate_args(t, a);
    gaddr next = t->pc;
    uint64_t flags = t->rflags | (t->trap_flag ? RFLAGS_TF : 0);
    if (traced_may(t->thread)) {
        if (!traced_gate(t, next)) return;
        nr = t->gpr[RAX];
        gate_args(t, a);
    }
    if (unlikely(t->thread->seccomp.mode) && !filters_allow(t, &nr, a, next, flags)) return;
    __atomic_store_n(&t->thread->in_call, true, __ATOMIC_RELAXED);
    __asm__ volatile("" ::: "memory"); /* who protects a page from now on sees that we are in a call (code_watch.c) */
    if (unlikely(code_watch_protected || track_closes)) model_before_kernel_write(nr, a);
    gate_fn *special = nr < MODEL_CALLS ? model_special[nr] : NULL;
    long ret = special ? special(t, a) : gate_syscall((long)nr, a);
    __atomic_store_n(&t->thread->in_call, false, __ATOMIC_RELEASE);
    if (unlikely(ret == -EINTR) && traced_undoes(t->thread)) ret = GATE_ABORTED;
    if (ret == GATE_ABORTED) {
        aborted(t, nr, next);
        return;
    }
    if (nr != __NR_rt_sigreturn) gate_finish(t, next, flags, ret); /* there every register comes from the frame */
    if (traced_may(t->thread)) traced_after_call(t->thread, nr);
}
