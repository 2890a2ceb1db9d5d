/* wait4 and waitid: of children the kernel knows, of tracees we do (trace_table.h). */
#include <linux/resource.h>
#include <linux/time_types.h>
#include <linux/wait.h>

#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/code_watch.h"
#include "sphere/sys/special.h"
#include "sphere/task_state.h"
#include "sphere/trace_table.h"
#include "sphere/traced.h"

#define LOOK_AFTER_MS 20
#define NAP_US 100
#define NAPS_MOST 10000
#define LOOK_AGAIN (-512) /* nothing that the kernel answers: of a pidfd that does not block that may be EAGAIN */
#define CLD_EXITED_ 1
#define CLD_KILLED_ 2
#define CLD_TRAPPED_ 4
#define SIGCHLD_ 17

struct wait {
    uint64_t nr;
    uint64_t a[6];
    int type, id; /* P_ALL, P_PID, P_PGID */
    uint64_t options;
};

static bool is_meant(const struct wait *w, const struct tracee *e) {
    switch (w->type) {
    case P_ALL: return true;
    case P_PID: return e->tid == w->id;
    case P_PGID: return SYS(getpgid, e->tgid) == (w->id ? w->id : SYS(getpgid, 0));
    default: return false;
    }
}

static bool has_news(const struct tracee *e) {
    uint32_t state = __atomic_load_n(&e->state, __ATOMIC_ACQUIRE);
    return (state == TRACEE_STOPPED && !e->reported) || state == TRACEE_ENDED;
}

/* A tracee that was killed cannot say so. Of its children the kernel tells us. */
static bool has_vanished(const struct tracee *e) { return task_is_over(e->tid); }

/* The tracee to tell of; *any: there is one that may be worth waiting for. */
static struct tracee *find(const struct wait *w, bool *any, bool look_for_dead) {
    struct tracee *e;
    *any = false;
    for (uint32_t i = 0; (e = trace_next(&i, (int)SYS(getpid)));) {
        if (!is_meant(w, e)) continue;
        *any = true;
        if (has_news(e)) return e;
        if (look_for_dead && has_vanished(e)) {
            e->status = 9;
            __atomic_store_n(&e->state, TRACEE_ENDED, __ATOMIC_SEQ_CST);
            return e;
        }
    }
    return NULL;
}

static bool put(gaddr to, const void *from, size_t len) {
    if (!to) return true;
    code_watch_before_kernel_write(to, len);
    return guest_write(to, from, len);
}

static bool put_siginfo(gaddr to, int tid, int status) {
    bool stopped = (status & 0x7f) == 0x7f;
    int how = stopped ? CLD_TRAPPED_ : (status & 0x7f) ? CLD_KILLED_ : CLD_EXITED_;
    uint64_t value = stopped           ? (uint32_t)status >> 8
                     : (status & 0x7f) ? (uint32_t)status & 0x7f
                                       : (uint32_t)status >> 8;
    struct siginfo_raw info = {.signo = SIGCHLD_, .code = how};
    info.w[0] = (uint32_t)tid | (uint64_t)SYS(getuid) << 32;
    info.w[1] = value;
    return put(to, &info, sizeof info);
}

/* A tracee says that it ends before it does. Who is told of it may rely on its parent having its SIGCHLD: the kernel sends
 * that while the process becomes a zombie, and has sent it when a look for children is possible again. */
static void await_end(const struct tracee *e) {
    struct __kernel_timespec nap = {0, NAP_US * 1000};
    if (e->tid != e->tgid) return;
    for (int i = 0; i < NAPS_MOST && task_state(e->tid) != 'X' && !task_is_over(e->tid); i++) SYS(nanosleep, &nap, 0);
    SYS(waitid, P_PID, e->tid, NULL, WEXITED | WNOHANG | WNOWAIT, NULL);
}

static long tell(const struct wait *w, struct tracee *e) {
    struct rusage usage;
    int tid = e->tid, status = e->status;
    memset(&usage, 0, sizeof usage);
    if (__atomic_load_n(&e->state, __ATOMIC_ACQUIRE) == TRACEE_ENDED) await_end(e);
    if (!(w->nr == __NR_waitid && (w->options & WNOWAIT))) {
        if (__atomic_load_n(&e->state, __ATOMIC_ACQUIRE) == TRACEE_ENDED)
            trace_free(e);
        else
            e->reported = true;
    }
    if (w->nr == __NR_waitid)
        return put_siginfo(w->a[2], tid, status) && put(w->a[4], &usage, sizeof usage) ? 0 : -EFAULT;
    return put(w->a[1], &status, 4) && put(w->a[3], &usage, sizeof usage) ? tid : -EFAULT;
}

/* The kernel has told of a child. If that has ended, and is no zombie any more, nobody is to be told again. */
static void forget(int pid) {
    if (pid <= 0 || SYS(kill, pid, 0) != -ESRCH) return;
    trace_remove_member(pid);
    struct tracee *e = trace_find(pid);
    if (e && e->tracer == (int)SYS(getpid)) trace_free(e);
}

/* ---- waiting ---- */

static struct trace_waiter *sign_up(const struct thread *t) {
    struct trace_table *table = trace_table_mapped();
    for (struct trace_waiter *w = table->waiters; w < table->waiters + TRACE_WAITERS; w++) {
        int32_t old = __atomic_load_n(&w->tid, __ATOMIC_RELAXED);
        if (old && (w->tgid == 0 || SYS(tgkill, w->tgid, old, 0) != -ESRCH)) continue;
        if (!__atomic_compare_exchange_n(&w->tid, &old, -1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) continue;
        w->tgid = t->tgid;
        __atomic_store_n(&w->tid, t->tid, __ATOMIC_SEQ_CST);
        return w;
    }
    return NULL;
}

static void sign_off(struct trace_waiter *w) {
    w->tgid = 0;
    __atomic_store_n(&w->tid, 0, __ATOMIC_SEQ_CST);
}

/* Nobody but tracees is left to wait for, who are no children: the kernel would not wait. */
static long wait_for_bell(struct thread *t, struct trace_waiter *w, uint32_t seen) {
    struct __kernel_timespec timeout = {0, LOOK_AFTER_MS * 1000000};
    uint64_t a[6] = {(uint64_t)&w->bell, 0 /* FUTEX_WAIT */, seen, (uint64_t)&timeout, 0, 0};
    long ret = gate_syscall(__NR_futex, a);
    if (ret == GATE_ABORTED) return ret;
    if (ret == -EINTR && t->n_pending) return signals_restart(t) ? GATE_ABORTED : -EINTR;
    return 0;
}

/* As the kernel does it: what else there is in a siginfo stays as it was. */
static bool put_of_kernel(gaddr to, const struct siginfo_raw *info) {
    return !to || (put(to, info, 12) && put(to + offsetof(struct siginfo_raw, w), info->w, 12));
}

/* *child: who has been told of; 0: nobody. */
static long ask_kernel(const struct wait *w, int *child) {
    if (w->nr != __NR_waitid) {
        long ret = gate_syscall(__NR_wait4, w->a);
        *child = ret > 0 ? (int)ret : 0;
        return ret;
    }
    struct siginfo_raw info = {0};
    uint64_t a[6] = {w->a[0], w->a[1], (uint64_t)&info, w->a[3], w->a[4], 0};
    long ret = gate_syscall(__NR_waitid, a);
    *child = ret == 0 ? (int)info.w[0] : 0;
    return ret == GATE_ABORTED || put_of_kernel(w->a[2], &info) ? ret : -EFAULT;
}

static long wait_once(struct thread *t, const struct wait *w, struct trace_waiter *waiter) {
    uint32_t seen = waiter ? __atomic_load_n(&waiter->bell, __ATOMIC_SEQ_CST) : 0;
    bool any;
    int child;
    struct tracee *e = find(w, &any, false);
    if (e) return tell(w, e);
    long ret = ask_kernel(w, &child);
    if (ret == -ECHILD && any) {
        if (w->options & WNOHANG) return 0;
        ret = waiter ? wait_for_bell(t, waiter, seen) : -ECHILD;
        if (ret == 0) ret = LOOK_AGAIN;
    }
    /* what interrupted us may be what we wait for */
    if (ret == GATE_ABORTED || ret == -EINTR || ret == LOOK_AGAIN || (ret == 0 && !child))
        e = find(w, &any, ret == LOOK_AGAIN);
    if (e) return tell(w, e);
    forget(child);
    return ret;
}

static long wait_for(struct tblock *tb, const struct wait *w) {
    if (!trace_table_mapped()) return gate_syscall((long)w->nr, w->a);
    struct thread *t = tb->thread;
    struct trace_waiter *waiter = w->options & WNOHANG ? NULL : sign_up(t);
    long ret;
    do ret = wait_once(t, w, waiter);
    while (ret == LOOK_AGAIN);
    if (waiter) sign_off(waiter);
    return ret;
}

long sys_wait4(struct tblock *tb, uint64_t a[6]) {
    int pid = (int)a[0];
    struct wait w = {.nr = __NR_wait4, .options = a[2]};
    memcpy(w.a, a, sizeof w.a);
    w.type = pid == -1 ? P_ALL : pid > 0 ? P_PID : P_PGID;
    w.id = pid > 0 ? pid : -pid;
    return wait_for(tb, &w);
}

long sys_waitid(struct tblock *tb, uint64_t a[6]) {
    struct wait w = {.nr = __NR_waitid, .type = (int)a[0], .id = (int)a[1], .options = a[3]};
    memcpy(w.a, a, sizeof w.a);
    return wait_for(tb, &w);
}
