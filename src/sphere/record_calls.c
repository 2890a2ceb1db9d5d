#include "sphere/record_parts.h"

#include <linux/fcntl.h>
#include <linux/futex.h>
#include <linux/mman.h>

#include "ckpt/rt/track.h"
#include "engine/cache.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "recorder/order.h"
#include "sphere/aio.h"
#include "sphere/checkpoint.h"
#include "sphere/code_files.h"
#include "sphere/code_watch.h"
#include "sphere/event_log.h"
#include "sphere/file_changes.h"
#include "sphere/legacy.h"
#include "sphere/listener.h"
#include "sphere/memory_hash.h"
#include "sphere/objects.h"
#include "sphere/outputs.h"
#include "sphere/packet_ring.h"
#include "sphere/pi_futex.h"
#include "sphere/shared.h"
#include "sphere/shared_stop.h"
#include "sphere/signals.h"
#include "sphere/sys/model.h"
#include "sphere/sys/scratch.h"
#include "sphere/sys/shared_inputs.h"
#include "sphere/sys/special.h"
#include "sphere/thread_end.h"
#include "sphere/traced.h"
#include "sphere/vdso.h"
#include "sphere/writers.h"

#define SIGSTOP_ 19
#define CHECK_CALLS 100            /* so many calls from one hash to the next, or more: */
#define CHECK_SHARE 5              /* hashes take no more than a fifth of the processor's time, */
#define CHECK_FREE_NS 100000000ull /* behind the first 100 ms of them */

struct outs {
    struct writes w;
    struct thread *t;
    uint32_t n;
    bool count; /* only how many events there would be */
};

static void out_range(struct writes *w, gaddr start, size_t len) {
    struct outs *o = (struct outs *)w;
    o->n += event_memory(o->t, EV_OUT, start, len, o->count);
}

static void out_anywhere(struct writes *w) {} /* said before the call was made */

/* The program writes to its own memory through /proc. */
static void out_by_file(struct outs *o, uint64_t nr, const uint64_t a[6], long ret) {
    bool at = nr == __NR_pwrite64 || nr == __NR_pwritev || nr == __NR_pwritev2;
    gaddr start;
    if (ret > 0 && (at || nr == __NR_write || nr == __NR_writev) &&
        code_files_mem_range((int)a[0], at ? (int64_t)a[3] : -1, (size_t)ret, &start))
        out_range(&o->w, start, (size_t)ret);
}

/* Mapping calls have no outputs. */
static bool gets_packets(uint64_t nr, const uint64_t a[6]) { return model_does(nr, a) == DOES_EMULATE; }

static uint32_t log_outs(struct thread *t, uint64_t nr, const uint64_t a[6], long ret, bool count) {
    struct outs o = {
        .w = {.range = out_range, .anywhere = out_anywhere, .is_done = true, .ret = ret}, .t = t, .count = count};
    if (nr < MODEL_CALLS && !t->wrote_elsewhere) model_writes(nr, a, &o.w);
    if (unlikely(t->marked_word)) out_range(&o.w, t->marked_word, 4);
    if (unlikely(code_files_mem_open) && !t->wrote_elsewhere) out_by_file(&o, nr, a, ret);
    if (unlikely(aio_is(nr))) aio_wrote(nr, a, ret, &o.w);
    if (unlikely(packet_ring_any) && gets_packets(nr, a)) packet_ring_taken(&o.w);
    return o.n;
}

struct ev_syscall *record_call(struct thread *t, uint64_t nr, const uint64_t a[6], long ret, uint8_t flags) {
    uint32_t outs = log_outs(t, nr, a, ret, true);
    struct event *e = event_new(t, EV_SYSCALL, (uint16_t)nr, sizeof(struct ev_syscall));
    struct ev_syscall *s = (struct ev_syscall *)(e + 1);
    e->flags = flags;
    s->ret = ret;
    memcpy(s->args, a, sizeof s->args);
    s->outs = outs;
    s->out_fd = 0;
    /* in force while it waited */
    s->out_seq = flags & EVF_RESTORE_MASK ? t->sigmask : t->stack_start;
    t->stack_start = 0;
    return s;
}

void record_done(struct thread *t, uint64_t nr, const uint64_t a[6], long ret, uint8_t flags) {
    record_call(t, nr, a, ret, flags | (t->restore_mask ? EVF_RESTORE_MASK : 0));
    log_outs(t, nr, a, ret, false);
}

static const uint16_t waiting_calls[] = {
    __NR_poll,
    __NR_select,
    __NR_pause,
    __NR_nanosleep,
    __NR_accept,
    __NR_wait4,
    __NR_futex,
    __NR_epoll_wait,
    __NR_rt_sigtimedwait,
    __NR_rt_sigsuspend,
    __NR_clock_nanosleep,
    __NR_waitid,
    __NR_pselect6,
    __NR_ppoll,
    __NR_epoll_pwait,
    __NR_accept4,
    __NR_semop,
    __NR_semtimedop,
    __NR_msgrcv,
    __NR_flock,
    __NR_futex_waitv,
    455 /* futex_wait */,
    441 /* epoll_pwait2 */,
};

static bool waits[MODEL_CALLS];

void record_calls_start(void) {
    for (size_t i = 0; i < ARRAY_LEN(waiting_calls); i++) waits[waiting_calls[i]] = true;
}

/* Most likely the call will wait, and others had better run at once. */
static bool most_likely_waits(uint64_t nr, const uint64_t a[6]) {
    if (!waits[nr]) return false;
    if (nr == __NR_futex) {
        int op = (int)a[1] & FUTEX_CMD_MASK;
        return op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET || op == FUTEX_LOCK_PI || op == FUTEX_WAIT_REQUEUE_PI ||
               op == FUTEX_LOCK_PI2;
    }
    return true;
}

long record_issue(struct tblock *tb, uint64_t nr, uint64_t a[6]) {
    struct thread *t = tb->thread;
    __atomic_store_n(&t->in_call, true, __ATOMIC_RELAXED);
    __asm__ volatile("" ::: "memory");
    if (unlikely(code_watch_protected || track_closes)) model_before_kernel_write(nr, a);
    gate_fn *special = model_special[nr];
    long ret = special ? special(tb, a) : gate_syscall((long)nr, a);
    __atomic_store_n(&t->in_call, false, __ATOMIC_RELEASE);
    return unlikely(ret == -EINTR) && traced_undoes(t) ? GATE_ABORTED : ret;
}

/* Whether somebody could see what the kernel writes before the turn is ours again: another R-thread; the pager sees only memory
 * that is shared, and closes it. */
static bool is_watched(uint64_t nr, const uint64_t a[6]) { return !order_is_last() || shared_may_be_written(nr, a); }

/* With others around, what the kernel writes must not be seen before the turn is ours again. */
static long issue_sharing(struct tblock *tb, uint64_t nr, uint64_t a[6]) {
    struct thread *t = tb->thread;
    struct scratch s;
    bool redirected = is_watched(nr, a) && scratch_begin(&s, tb, nr, a);
    bool will_wait = most_likely_waits(nr, a);
    if (unlikely(shared_active) && will_wait && shared_is_wanted()) shared_serve(t, EVF_AT_GATE, false);
    t->turn_lent = true;
    checkpoint_park(t, will_wait);
    order_enter_call(t, will_wait);
    long ret = record_issue(tb, nr, a);
    order_leave_call(t);
    t->turn_lent = false;
    if (unlikely(t->owes)) checkpoint_pay(t);
    if (!redirected) return ret;
    if (unlikely(shared_active) && ret != GATE_ABORTED && ret != -EFAULT) shared_hold_written(nr, s.program, ret);
    return scratch_end(&s, tb, nr, a, ret);
}

long record_ask(struct tblock *tb, uint64_t nr, const uint64_t a[6]) {
    struct thread *t = tb->thread;
    bool shared = order_is_shared();
    if (shared) {
        t->turn_lent = true;
        checkpoint_park(t, true);
        order_enter_call(t, true);
    }
    long ret = listener_wait(tb, nr, a);
    if (shared) {
        order_leave_call(t);
        t->turn_lent = false;
        if (unlikely(t->owes)) checkpoint_pay(t);
    }
    listener_done(t);
    return ret;
}

static long issue_either(struct tblock *tb, uint64_t nr, uint64_t a[6], bool may_wait) {
    return may_wait ? issue_sharing(tb, nr, a) : record_issue(tb, nr, a);
}

/* With memory that other processes share: the kernel sees only what is ours. */
static long issue_holding(struct tblock *tb, uint64_t nr, uint64_t a[6], bool lends) {
    struct shared_inputs in;
    long ret;
    do {
        bool may_wait = lends && order_is_shared();
        shared_inputs_begin(&in, nr, a, may_wait);
        if (lends && !may_wait &&
            order_is_shared()) { /* the first page has come, and with it a pager that needs the turn */
            may_wait = true;
            shared_inputs_end(&in, nr, a, 0);
            shared_inputs_begin(&in, nr, a, may_wait);
        }
        ret = issue_either(tb, nr, a, may_wait);
    } while (shared_inputs_end(&in, nr, a, ret));
    return ret;
}

static long wait_on_word(struct tblock *tb, uint64_t b[6]) {
    return unlikely(shared_active) ? issue_holding(tb, __NR_futex, b, true)
                                   : issue_either(tb, __NR_futex, b, order_is_shared());
}

/* Waiting for a robust mutex of another process. The kernel cannot mark it when its owner is killed and the page is elsewhere. */
static long wait_for_owner(struct tblock *tb, uint64_t nr, const uint64_t a[6]) {
    for (;;) {
        struct shared_pause pause;
        uint64_t b[6];
        shared_pause_futex(&pause, a, b);
        long ret = issue_holding(tb, nr, b, true);
        if (ret != -ETIMEDOUT) return ret;
        if (!shared_is_dead((uint32_t)a[2] & FUTEX_TID_MASK)) continue;
        uint32_t value, marked = ((uint32_t)a[2] & FUTEX_WAITERS) | FUTEX_OWNER_DIED;
        if (!guest_read(&value, a[0], 4)) return -EFAULT;
        if (value != (uint32_t)a[2]) return -EAGAIN;
        guest_write(a[0], &marked, 4);
        tb->thread->marked_word = a[0];
        return 0;
    }
}

static long vdso_time(struct tblock *tb, uint64_t nr, uint64_t a[6]) {
    bool is_clock = nr == __NR_clock_gettime, is_plain = is_clock || (a[0] && !a[1]); /* no time zone */
    int64_t v[2];
    if (!vdso_clock_gettime || !is_plain || vdso_clock_gettime(is_clock ? (int)a[0] : 0 /* CLOCK_REALTIME */, v) != 0)
        return record_issue(tb, nr, a);
    if (unlikely(code_watch_protected || track_closes)) model_before_kernel_write(nr, a);
    if (!is_clock) v[1] /= 1000;
    return guest_write(is_clock ? a[1] : a[0], v, sizeof v) ? 0 : -EFAULT;
}

/* One of the calls that are the same for all threads: the kernel keeps nothing for them in the program's memory. */
static long own_tid_calls(struct tblock *tb, uint64_t nr, const uint64_t a[6]) {
    struct thread *t = tb->thread;
    if (unlikely(code_watch_protected || track_closes)) model_before_kernel_write(nr, a);
    switch (nr) {
    case __NR_set_tid_address: return thread_set_tid_address(t, a[0]);
    case __NR_set_robust_list: return thread_set_robust_list(t, a[0], a[1]);
    default: return thread_get_robust_list(t, a);
    }
}

/* A process that stops itself does so before the call is over: the signal goes to this thread, not to any. */
static long send_stop(struct tblock *tb, uint64_t nr, uint64_t a[6], int pid) {
    struct thread *t = tb->thread;
    bool to_itself = nr == __NR_kill && pid == t->process->pid && a[1] == SIGSTOP_;
    if (ptrace_stops(nr, a)) return 0;
    shared_stop_before(t, pid);
    long ret = to_itself ? SYS(tgkill, pid, t->tid, SIGSTOP_) : record_issue(tb, nr, a);
    shared_stop_after();
    return ret;
}

/* Pages of a file that the call is about to change; true: there are some, and they stay ours, as does the turn, until it is over. What
 * else the call needs comes first: waiting for it could cost them. */
static bool hold_file(struct thread *t, uint64_t nr, const uint64_t a[6]) {
    uint64_t before;
    bool keeps;
    if (!shared_has_files()) return false;
    do {
        before = shared_acquired;
        keeps = file_changes_hold(t, nr, a);
        if (keeps && shared_active) shared_hold_arguments(nr, a);
    } while (keeps && before != shared_acquired);
    return keeps;
}

/* lends: others may have the turn meanwhile */
static long issue_plain(struct tblock *tb, uint64_t nr, uint64_t a[6], bool lends) {
    bool keeps = hold_file(tb->thread, nr, a);
    bool shared = lends && order_is_shared() && !keeps;
    long ret = unlikely(shared_active) ? issue_holding(tb, nr, a, lends && !keeps) : issue_either(tb, nr, a, shared);
    if (unlikely(ret == -EFAULT) && shared && shared_active)
        ret = issue_holding(tb, nr, a, shared); /* borrowed since */
    return ret;
}

/* aio_issue_fn */
static long issue_for_aio(struct tblock *tb, uint64_t nr, uint64_t a[6], bool lends) {
    long ret = record_refusal(nr, a);
    return ret ? ret : issue_plain(tb, nr, a, lends);
}

static long perform(struct tblock *tb, uint64_t nr, uint64_t a[6], bool is_output) {
    if (unlikely(aio_is(nr))) return aio_call(tb, nr, a, issue_for_aio);
    long ret = record_refusal(nr, a);
    if (ret) return ret;
    switch (nr) {
    case __NR_clock_gettime:
    case __NR_gettimeofday: return vdso_time(tb, nr, a);
    case __NR_set_tid_address:
    case __NR_set_robust_list:
    case __NR_get_robust_list: return own_tid_calls(tb, nr, a);
    case __NR_sched_yield:
        if (order_is_shared()) {
            checkpoint_park(tb->thread, true);
            order_yield(tb->thread);
            if (shared_active) SYS(sched_yield);
            return 0;
        }
        return record_issue(tb, nr, a);
    case __NR_madvise:
        if (a[2] == MADV_FREE) a[2] = MADV_DONTNEED; /* what is dropped must not depend on memory pressure */
        return issue_plain(tb, nr, a, false);
    }
    if (unlikely(pi_futex_is(nr, a))) return pi_futex_call(tb, a, wait_on_word);
    int pid;
    if (unlikely(shared_stop_is_sent(nr, a, &pid)) && shared_tables()) return send_stop(tb, nr, a, pid);
    ret = outputs_refuse(tb->thread, nr, a);
    if (ret) return ret;
    if (unlikely(shared_active) && shared_is_robust_wait(nr, a)) return wait_for_owner(tb, nr, a);
    bool lends = (model_rows[nr].flags & CALL_BLOCKS) && !(is_output && outputs_is_ready(nr, a));
    return issue_plain(tb, nr, a, lends);
}

/* Behind a call that has been shown to the tracer. */
static void settle(struct thread *t, uint64_t nr) {
    if (unlikely(nr == __NR_wait4 || nr == __NR_waitid) && order_is_shared()) record_bury_dead(t);
    if (unlikely(signals_is_waiting(t))) {
        if (signals_will_kill(t)) checkpoint_at_end(t, EVF_AFTER, CHECKPOINT_SIGNAL);
        signals_deliver_deferred(t, EVF_AFTER);
    }
    if (unlikely(t->restore_mask)) signals_end_wait(t);
}

void record_behind(struct thread *t, uint64_t nr) {
    if (traced_may(t)) traced_after_call(t, nr);
    settle(t, nr);
}

/* Rings that are made, and packets in them. */
static void follow_rings(struct thread *t, uint64_t nr, const uint64_t a[6], long ret) {
    if (unlikely(nr == __NR_setsockopt) && ret == 0 && packet_ring_is(a)) packet_ring_made(a);
    if (likely(!packet_ring_any)) return;
    if (gets_packets(nr, a)) packet_ring_take();
    ticks_set_budget(t->tb, record_budget(t));
}

/* Files that are open for writing and mapped. */
static void follow_files(struct thread *t, uint64_t nr, const uint64_t a[6], long ret) {
    uint64_t flags;
    switch (nr) {
    case __NR_open: file_changes_opened(t, ret, a[1]); break;
    case __NR_openat: file_changes_opened(t, ret, a[2]); break;
    case __NR_openat2:
        if (guest_read(&flags, a[2], 8)) file_changes_opened(t, ret, flags);
        break;
    case __NR_creat: file_changes_opened(t, ret, O_WRONLY | O_TRUNC); break;
    case __NR_truncate:
        if (ret == 0) file_changes_truncated(t, a[0]);
        break;
    case __NR_io_submit: aio_each_done(t, ret > 0 ? (uint32_t)ret : 0, file_changes_log); break;
    default: file_changes_log(t, nr, a, ret);
    }
}

void record_keep_file(int fd, const struct file_id *id, bool tracked) {
    if (!tracked) writers_map(id); /* only those that have it privately are told of changes, from now on */
    objects_keep(fd, id, tracked);
    file_changes_mapped(fd, id);
}

static uint64_t own_cpu_ns(void) {
    int64_t ts[2] = {0};
    SYS(clock_gettime, 2 /* CLOCK_PROCESS_CPUTIME_ID */, ts);
    return (uint64_t)ts[0] * 1000000000ull + (uint64_t)ts[1];
}

/* record --check. Threads that hand over often make many calls, and a hash takes milliseconds where there is much memory. */
static void log_hash(struct thread *t) {
    static uint32_t calls;
    static uint64_t last, spent; /* time of the processor: until the last hash, and for all of them */
    if (!(the_channel->flags & CHANNEL_CHECK) || calls++ % CHECK_CALLS) return;
    uint64_t began = own_cpu_ns();
    if (began < last) spent = 0; /* another process: a child of the one that counted */
    if (spent > CHECK_FREE_NS + began / CHECK_SHARE) return;
    struct ev_hash h;
    if (!memory_hash(&h)) return;
    last = own_cpu_ns();
    spent += last - began;
    struct event *e = event_new(t, EV_HASH, 0, sizeof h);
    memcpy(e + 1, &h, sizeof h);
}

void record_aborted(struct tblock *tb, uint64_t nr, gaddr next) {
    struct thread *t = tb->thread;
    gate_retry(tb, next);
    tb->pending = 0;
    bool was_stopped = traced_may(t) && traced_aborted(t, nr); /* it may be elsewhere now */
    if (signals_is_waiting(t)) {
        signals_deliver_deferred(t, was_stopped ? EVF_AFTER : EVF_AT_GATE);
        stream_commit();
    }
}

void record_ordinary(struct tblock *tb, uint64_t nr, uint64_t a[6], gaddr next, uint64_t flags) {
    struct thread *t = tb->thread;
    const uint64_t asked[6] = {a[0], a[1], a[2], a[3], a[4], a[5]};
    struct output out;
    bool is_output = outputs_begin(t, nr, a, &out);
    if (unlikely(packet_ring_any)) packet_ring_return();
    long ret = perform(tb, nr, a, is_output);
    if (ret == GATE_ABORTED) {
        if (is_output) outputs_end(&out, ret);
        record_aborted(tb, nr, next);
        return;
    }
    outputs_follow(t, nr, asked, ret);
    follow_rings(t, nr, asked, ret);
    uint8_t ev_flags = t->restore_mask ? EVF_RESTORE_MASK : 0;
    bool counted = is_output && outputs_end(&out, ret);
    struct ev_syscall *s = record_call(t, nr, asked, ret, ev_flags | (counted ? EVF_OUTPUT : 0));
    if (counted) {
        s->out_fd = out.fd;
        s->out_seq = out.seq;
    }
    log_outs(t, nr, asked, ret, false);
    t->marked_word = 0;
    t->wrote_elsewhere = false;
    if (unlikely(nr == __NR_mmap || nr == __NR_shmat)) objects_log_mapped(t, nr, asked, ret);
    follow_files(t, nr, asked, ret);
    gate_finish(tb, next, flags, ret);
    log_hash(t);
    stream_commit();
    record_behind(t, nr);
    checkpoint_consider(
        t, EVF_AFTER); /* not before: where a tracee stops, behind the call or for a signal, nobody can stand */
}

long record_legacy(struct tblock *tb, uint32_t nr, const uint64_t a[6]) {
    struct thread *t = tb->thread;
    long ret = legacy_issue(tb, nr, a);
    struct outs o = {
        .w = {.range = out_range, .anywhere = out_anywhere, .is_done = true, .ret = ret}, .t = t, .count = true};
    legacy_writes(nr, a, &o.w);
    struct event *e = event_new(t, EV_SYSCALL, (uint16_t)(LEGACY_CALL + nr), sizeof(struct ev_syscall));
    struct ev_syscall *s = (struct ev_syscall *)(e + 1);
    *s = (struct ev_syscall){.ret = ret, .outs = o.n};
    memcpy(s->args, a, sizeof s->args);
    o.count = false;
    legacy_writes(nr, a, &o.w);
    stream_commit();
    return ret;
}
