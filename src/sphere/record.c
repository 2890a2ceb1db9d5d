#include "sphere/record.h"

#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/futex.h>
#include <linux/mman.h>
#include <linux/sched.h>
#include <linux/stat.h>

#include "ckpt/rt/track.h"
#include "engine/cache.h"
#include "engine/kept.h"
#include "inproc/arena.h"
#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "recorder/order.h"
#include "sphere/aspace.h"
#include "sphere/checkpoint.h"
#include "sphere/code_files.h"
#include "sphere/code_watch.h"
#include "sphere/cpu_level.h"
#include "sphere/event_log.h"
#include "sphere/file_changes.h"
#include "sphere/legacy.h"
#include "sphere/memory_hash.h"
#include "sphere/mode.h"
#include "sphere/objects.h"
#include "sphere/outputs.h"
#include "sphere/recorded_insn.h"
#include "sphere/runtime.h"
#include "sphere/schedule.h"
#include "sphere/shared.h"
#include "sphere/shared_stop.h"
#include "sphere/shared_values.h"
#include "sphere/signals.h"
#include "sphere/snapshot.h"
#include "sphere/sys/model.h"
#include "sphere/sys/scratch.h"
#include "sphere/sys/shared_inputs.h"
#include "sphere/sys/special.h"
#include "sphere/thread_end.h"
#include "sphere/trace_record.h"
#include "sphere/traced.h"
#include "sphere/vdso.h"

#define SIGKILL_ 9
#define SIGSTOP_ 19
#define CHECK_CALLS 100 /* so many calls from one hash to the next */

/* ---- what a call wrote ---- */

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

static uint32_t log_outs(struct thread *t, uint64_t nr, const uint64_t a[6], long ret, bool count) {
    struct outs o = {
        .w = {.range = out_range, .anywhere = out_anywhere, .is_done = true, .ret = ret}, .t = t, .count = count};
    if (nr < MODEL_CALLS) model_writes(nr, a, &o.w);
    if (unlikely(t->marked_word)) out_range(&o.w, t->marked_word, 4);
    if (unlikely(code_files_mem_open)) out_by_file(&o, nr, a, ret);
    return o.n;
}

static struct ev_syscall *log_call(struct thread *t, uint64_t nr, const uint64_t a[6], long ret, uint8_t flags) {
    uint32_t outs = log_outs(t, nr, a, ret, true);
    struct event *e = event_new(t, EV_SYSCALL, (uint16_t)nr, sizeof(struct ev_syscall));
    struct ev_syscall *s = (struct ev_syscall *)(e + 1);
    e->flags = flags;
    s->ret = ret;
    memcpy(s->args, a, sizeof s->args);
    s->outs = outs;
    s->out_fd = 0;
    s->out_seq = flags & EVF_RESTORE_MASK ? t->sigmask : 0; /* in force while it waited */
    return s;
}

/* The event of a call that is done. */
static void log_done(struct thread *t, uint64_t nr, const uint64_t a[6], long ret) {
    uint8_t flags = t->restore_mask ? EVF_RESTORE_MASK : 0;
    log_call(t, nr, a, ret, flags);
    log_outs(t, nr, a, ret, false);
}

/* ---- calls that cannot be recorded ---- */

static void note_anywhere(struct writes *w) { w->is_done = true; }
static void note_range(struct writes *w, gaddr start, size_t len) {}

static bool writes_anywhere(uint64_t nr, const uint64_t a[6]) {
    struct writes w = {.range = note_range, .anywhere = note_anywhere};
    model_writes(nr, a, &w);
    return w.is_done;
}

/* Says so once for each call (and request). */
static void say_refused(uint64_t nr, uint64_t request) {
    static uint64_t said[64];
    static size_t n;
    uint64_t key = nr << 40 | (request & 0xffffffffffull);
    for (size_t i = 0; i < n; i++)
        if (said[i] == key) return;
    if (n < ARRAY_LEN(said)) said[n++] = key;
    const char *name = nr < MODEL_CALLS && model_rows[nr].name[0] ? model_rows[nr].name : "unknown call";
    if (nr == __NR_ioctl)
        say("ioctl request 0x%lx is not in the model: refused while recording", request);
    else
        say("%s (%lu) cannot be recorded: refused", name, nr);
}

/* Our channel and socket are open files; the program shall not find them. (Its own file is an O_PATH descriptor.) */
static bool takes_descriptor(uint64_t nr) {
    switch (nr) {
    case __NR_read:
    case __NR_write:
    case __NR_lseek:
    case __NR_ioctl:
    case __NR_pread64:
    case __NR_pwrite64:
    case __NR_readv:
    case __NR_writev:
    case __NR_preadv:
    case __NR_pwritev:
    case __NR_preadv2:
    case __NR_pwritev2:
    case __NR_sendfile:
    case __NR_connect:
    case __NR_accept:
    case __NR_accept4:
    case __NR_sendto:
    case __NR_recvfrom:
    case __NR_sendmsg:
    case __NR_recvmsg:
    case __NR_sendmmsg:
    case __NR_recvmmsg:
    case __NR_shutdown:
    case __NR_getsockname:
    case __NR_getpeername:
    case __NR_setsockopt:
    case __NR_getsockopt:
    case __NR_flock:
    case __NR_fsync:
    case __NR_fdatasync:
    case __NR_ftruncate:
    case __NR_fchmod:
    case __NR_fchown:
    case __NR_fallocate:
    case __NR_fadvise64:
    case __NR_readahead:
    case __NR_splice:
    case __NR_tee:
    case __NR_copy_file_range: return true;
    default: return false;
    }
}

/* No device and no socket: there is nothing that would know an odd request. */
static bool is_plain_file(int fd) {
    struct stat st;
    if (SYS(fstat, fd, &st) != 0) return false;
    return (st.st_mode & S_IFMT) == S_IFREG || (st.st_mode & S_IFMT) == S_IFDIR || (st.st_mode & S_IFMT) == S_IFIFO;
}

/* What the kernel would say, too, to a request that it does not know. */
static long unknown_request(uint64_t nr, const uint64_t a[6]) {
    switch (nr) {
    case __NR_ioctl:
        if (SYS(fcntl, a[0], 1 /* F_GETFD */) == -EBADF) return -EBADF;
        if (!is_plain_file((int)a[0])) say_refused(nr, a[1]);
        return -ENOTTY;
    case __NR_fcntl: return SYS(fcntl, a[0], 1 /* F_GETFD */) == -EBADF ? -EBADF : -EINVAL;
    case __NR_prctl: return -EINVAL;
    case __NR_keyctl: return -EOPNOTSUPP;
    default: say_refused(nr, 0); return -ENOSYS;
    }
}

/* 0: may be issued. */
static long refusal(uint64_t nr, const uint64_t a[6]) {
    if (nr == __NR_rseq || nr == __NR_restart_syscall) return nr == __NR_rseq ? -ENOSYS : -EINTR;
    if (unlikely(fd_is_own(a[0])) && takes_descriptor(nr)) return -EBADF;
    if (nr == __NR_epoll_ctl && fd_is_own(a[2])) return -EBADF;
    if (nr >= MODEL_CALLS || model_rows[nr].does == DOES_REFUSE || model_rows[nr].does == DOES_UNKNOWN) return -ENOSYS;
    return writes_anywhere(nr, a) ? unknown_request(nr, a) : 0;
}

/* ---- ordinary calls ---- */

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

static long issue(struct tblock *tb, uint64_t nr, uint64_t a[6]) {
    struct thread *t = tb->thread;
    __atomic_store_n(&t->in_call, true, __ATOMIC_RELAXED);
    __asm__ volatile("" ::: "memory");
    if (unlikely(code_watch_protected || track_closes)) model_before_kernel_write(nr, a);
    gate_fn *special = model_special[nr];
    long ret = special ? special(tb, a) : gate_syscall((long)nr, a);
    __atomic_store_n(&t->in_call, false, __ATOMIC_RELEASE);
    return unlikely(ret == -EINTR) && traced_interrupted(t) ? GATE_ABORTED : ret;
}

/* With others around, what the kernel writes must not be seen before the turn is ours again. */
static long issue_sharing(struct tblock *tb, uint64_t nr, uint64_t a[6]) {
    struct thread *t = tb->thread;
    struct scratch s;
    bool redirected = scratch_begin(&s, tb, nr, a);
    bool will_wait = most_likely_waits(nr, a);
    if (unlikely(shared_active) && will_wait && shared_is_wanted()) shared_serve(t, EVF_AT_GATE, false);
    t->turn_lent = true;
    checkpoint_park(t, will_wait);
    order_enter_call(t, will_wait);
    long ret = issue(tb, nr, a);
    order_leave_call(t);
    t->turn_lent = false;
    if (unlikely(t->owes)) checkpoint_pay(t);
    if (!redirected) return ret;
    if (unlikely(shared_active) && ret != GATE_ABORTED && ret != -EFAULT) shared_hold_written(nr, s.program, ret);
    return scratch_end(&s, tb, nr, a, ret);
}

static long issue_either(struct tblock *tb, uint64_t nr, uint64_t a[6], bool may_wait) {
    return may_wait ? issue_sharing(tb, nr, a) : issue(tb, nr, a);
}

/* With memory that other processes share: the kernel sees only what is ours. */
static long issue_holding(struct tblock *tb, uint64_t nr, uint64_t a[6], bool may_wait) {
    struct shared_inputs in;
    long ret;
    do {
        shared_inputs_begin(&in, nr, a, may_wait);
        ret = issue_either(tb, nr, a, may_wait);
    } while (shared_inputs_end(&in, nr, a, ret));
    return ret;
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
    int64_t v[2];
    if (!vdso_clock_gettime || nr != __NR_clock_gettime || vdso_clock_gettime((int)a[0], v) != 0)
        return issue(tb, nr, a);
    if (unlikely(code_watch_protected || track_closes)) model_before_kernel_write(nr, a);
    return guest_write(a[1], v, sizeof v) ? 0 : -EFAULT;
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
    long ret = to_itself ? SYS(tgkill, pid, t->tid, SIGSTOP_) : issue(tb, nr, a);
    shared_stop_after();
    return ret;
}

static long perform(struct tblock *tb, uint64_t nr, uint64_t a[6], bool is_output) {
    long ret = refusal(nr, a);
    if (ret) return ret;
    switch (nr) {
    case __NR_clock_gettime: return vdso_time(tb, nr, a);
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
        return issue(tb, nr, a);
    case __NR_madvise:
        if (a[2] == MADV_FREE) a[2] = MADV_DONTNEED; /* what is dropped must not depend on memory pressure */
        return issue(tb, nr, a);
    }
    int pid;
    if (unlikely(shared_stop_is_sent(nr, a, &pid)) && shared_tables()) return send_stop(tb, nr, a, pid);
    ret = outputs_refuse(tb->thread, nr, a);
    if (ret) return ret;
    if (unlikely(shared_active) && shared_is_robust_wait(nr, a)) return wait_for_owner(tb, nr, a);
    bool keeps = (is_output && outputs_is_ready(nr, a)) || (shared_has_files() && file_changes_hold(tb->thread, nr, a));
    bool shared = (model_rows[nr].flags & CALL_BLOCKS) && order_is_shared() && !keeps;
    return unlikely(shared_active) ? issue_holding(tb, nr, a, shared) : issue_either(tb, nr, a, shared);
}

static void finish(struct tblock *tb, gaddr next, uint64_t flags, long ret) {
    tb->gpr[RAX] = (uint64_t)ret;
    tb->gpr[RCX] = next;
    tb->gpr[R11] = flags;
    if (unlikely(tb->thread->legacy.under_way)) legacy_done(tb);
}

/* A call of t's is over. */
static void behind(struct thread *t, uint64_t nr) {
    if (traced_may(t)) traced_after_call(t, nr);
    if (unlikely(signals_is_waiting(t))) {
        if (signals_will_kill(t)) checkpoint_at_end(t, EVF_AFTER, CHECKPOINT_SIGNAL);
        signals_deliver_deferred(t, EVF_AFTER);
    }
    if (unlikely(t->restore_mask)) signals_end_wait(t);
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
    default: file_changes_log(t, nr, a, ret);
    }
}

static void keep_file(int fd, const struct file_id *id) {
    objects_keep(fd, id);
    file_changes_mapped(fd, id);
}

/* record --check */
static void log_hash(struct thread *t) {
    static uint32_t calls;
    if (!(the_channel->flags & CHANNEL_CHECK) || calls++ % CHECK_CALLS) return;
    struct ev_hash h = memory_hash();
    struct event *e = event_new(t, EV_HASH, 0, sizeof h);
    memcpy(e + 1, &h, sizeof h);
}

static void ordinary(struct tblock *tb, uint64_t nr, uint64_t a[6], gaddr next, uint64_t flags) {
    struct thread *t = tb->thread;
    const uint64_t asked[6] = {a[0], a[1], a[2], a[3], a[4], a[5]};
    struct output out;
    bool is_output = outputs_begin(t, nr, a, &out);
    long ret = perform(tb, nr, a, is_output);
    if (ret == GATE_ABORTED) {
        if (is_output) outputs_end(&out, ret);
        gate_retry(tb, next);
        if (traced_may(t)) traced_aborted(t, nr);
        if (signals_is_waiting(t)) {
            signals_deliver_deferred(t, EVF_AT_GATE);
            stream_commit();
        }
        tb->pending = 0;
        return;
    }
    outputs_follow(t, nr, asked, ret);
    uint8_t ev_flags = t->restore_mask ? EVF_RESTORE_MASK : 0;
    bool counted = is_output && outputs_end(&out, ret);
    struct ev_syscall *s = log_call(t, nr, asked, ret, ev_flags | (counted ? EVF_OUTPUT : 0));
    if (counted) {
        s->out_fd = out.fd;
        s->out_seq = out.seq;
    }
    log_outs(t, nr, asked, ret, false);
    t->marked_word = 0;
    if (unlikely(nr == __NR_mmap || nr == __NR_shmat)) objects_log_mapped(t, nr, asked, ret);
    follow_files(t, nr, asked, ret);
    finish(tb, next, flags, ret);
    log_hash(t);
    stream_commit();
    checkpoint_consider(t, EVF_AFTER);
    behind(t, nr);
}

/* ---- processes and threads ---- */

static void log_child(struct thread *t, enum event_kind kind, uint64_t stream, uint32_t thread) {
    struct event *e = event_new(t, kind, 0, sizeof(struct ev_child));
    *(struct ev_child *)(e + 1) = (struct ev_child){.stream = stream, .thread = thread};
}

static void log_exit(struct thread *t, enum event_kind kind, int status) {
    struct event *e = event_new(t, kind, 0, sizeof(struct ev_exit));
    *(struct ev_exit *)(e + 1) = (struct ev_exit){.status = status};
}

static uint32_t n_rthreads = 1; /* numbers given out in this stream */
static struct stream child_stream;

static void forked_child(struct thread *t) {
    uint32_t parent_thread = t->number;
    uint64_t parent = the_stream.number;
    stream_attach_writer(fd_own() + 1, &child_stream);
    t->number = 0;
    n_rthreads = 1;
    order_start(t, the_channel->flags & CHANNEL_CHAOS);
    shared_forget_pager();
    shared_disown_all();
    struct event *e = event_new(t, EV_FORKED, 0, sizeof(struct ev_forked));
    *(struct ev_forked *)(e + 1) = (struct ev_forked){
        .pid = (uint32_t)SYS(getpid), .ppid = (uint32_t)SYS(getppid), .parent = parent, .parent_thread = parent_thread};
    checkpoint_start();
}

/* No ring is left, or recording has ended: the child goes on by itself. */
static bool announce_fork(struct thread *t) {
    bool recorded = stream_new(&child_stream);
    if (!recorded) child_stream = (struct stream){UINT64_MAX, CHANNEL_RINGS};
    log_child(t, EV_FORK, child_stream.number, 0);
    return recorded;
}

static void fork_call(struct tblock *tb, uint64_t nr, uint64_t a[6], gaddr next, uint64_t flags) {
    struct thread *t = tb->thread;
    const uint64_t asked[6] = {a[0], a[1], a[2], a[3], a[4], a[5]};
    shared_before_fork(shared_claim);
    if (shared_active) shared_start_pager(t);
    bool recorded = announce_fork(t);
    stream_commit();
    long ret = issue(tb, nr, a);
    if (ret == 0 && t->process->pid != 0 && recorded) forked_child(t);
    if (ret == 0 && !recorded) {
        stream_abandon();
        shared_abandon();
    }
    if (ret < 0 && recorded) stream_discard(&child_stream);
    if (ret > 0 && recorded) stream_give(&child_stream, (uint32_t)ret);
    log_done(t, nr, asked, ret);
    finish(tb, next, flags, ret);
    stream_commit();
    behind(t, nr);
}

static uint64_t clone_flags(uint64_t nr, const uint64_t a[6]) {
    uint64_t flags = a[0];
    if (nr == __NR_fork) return 0;
    if (nr == __NR_vfork) return CLONE_VM | CLONE_VFORK;
    if (nr == __NR_clone3 && !guest_read(&flags, a[0], 8)) return 0;
    return flags;
}

/* Of the thread that the call under way makes. */
static uint64_t child_fs_base(const struct tblock *tb) {
    uint64_t a[6], tls = 0;
    gate_args(tb, a);
    if (!(clone_flags(tb->gpr[RAX], a) & CLONE_SETTLS)) return schedule_fs_base();
    if (tb->gpr[RAX] == __NR_clone) return a[4];
    guest_read(&tls, a[0] + offsetof(struct clone_args, tls), 8);
    return tls;
}

/* sys/proc.c: a thread block for the child is there, the kernel has not been asked yet. */
static void before_clone(struct thread *t, struct thread *child) {
    child->number = n_rthreads++;
    child->awaits = AWAITS_TURN;
    checkpoint_park_new(child, child_fs_base(t->tb));
    order_add(child);
    log_child(t, EV_CLONE, the_stream.number, child->number);
    stream_commit();
    if (child->vforked) order_enter_call(t, true);
}

static void after_clone(struct thread *t, struct thread *child, long ret) {
    if (child->vforked) {
        order_reclaim(t, child);
        order_leave_call(t);
    }
    if (ret < 0 || child->vforked) order_remove(child);
}

static void thread_begin(struct thread *t) {
    order_take(t);
    event_new(t, EV_TURN, 0, 0);
    stream_commit();
}

static void clone_call(struct tblock *tb, uint64_t nr, uint64_t a[6], gaddr next, uint64_t flags) {
    struct thread *t = tb->thread;
    const uint64_t asked[6] = {a[0], a[1], a[2], a[3], a[4], a[5]};
    long ret = issue(tb, nr, a);
    log_done(t, nr, asked, ret);
    finish(tb, next, flags, ret);
    stream_commit();
    behind(t, nr);
}

static void end_of_process(struct thread *t, int status) {
    process_clear_words(t->process);
    thread_leave_mutexes(t);
    log_exit(t, EV_END, status);
    stream_close();
    shared_ended();
}

/* A process whose memory is another's ends: only its R-thread is gone. */
static void end_of_sharer(struct thread *t, int status) {
    log_exit(t, EV_EXIT, status);
    thread_clear_words(t);
    stream_commit();
    checkpoint_forget(t);
    t->ended = true;
    if (!t->vforked) order_remove(t);
    order_drop(t);
}

static void exit_call(struct tblock *tb, int status) {
    struct thread *t = tb->thread;
    if (!t->vforked && order_is_last()) {
        end_of_process(t, (status & 0xff) << 8);
        sys_exit_group(tb, (uint64_t[6]){(uint64_t)status});
    }
    log_exit(t, EV_EXIT, (status & 0xff) << 8);
    thread_clear_words(t);
    stream_commit();
    checkpoint_forget(t);
    traced_thread_ends(t, (status & 0xff) << 8);
    t->ended = true;
    if (!t->vforked) order_remove(t);
    order_drop(t);
    thread_exit(t, status);
}

static void thread_killed(struct thread *t, int signo) { exit_call(t->tb, signo); }

/* Whether only its R-thread ends with a process: its memory is another's. */
static bool is_sharer(const struct thread *t) {
    return t->process->shares_memory || (t->tgid && t->tgid != t->process->pid);
}

static void exit_group_call(struct tblock *tb, int status) {
    struct thread *t = tb->thread;
    if (is_sharer(t)) {
        end_of_sharer(t, (status & 0xff) << 8);
    } else {
        end_of_process(t, (status & 0xff) << 8);
    }
    sys_exit_group(tb, (uint64_t[6]){(uint64_t)status});
}

static void death(struct thread *t, int signo) {
    if (is_sharer(t))
        end_of_sharer(t, signo);
    else
        end_of_process(t, signo);
}

/* ---- exec ---- */

static struct stream exec_stream;

/* A process leaves memory that is another's, which goes on without it; a vfork child's parent takes the turn back itself. */
static void leave_memory(struct thread *t) {
    if (!is_sharer(t) || t->vforked) return;
    thread_clear_words(t);
    stream_commit();
    checkpoint_park(t, true);
    order_remove(t);
    order_drop(t);
}

static void come_back(struct thread *t) {
    if (!is_sharer(t) || t->vforked) return;
    order_add(t);
    order_take(t);
}

static size_t before_exec(struct thread *t, char *options, size_t cap) {
    exec_stream = (struct stream){UINT64_MAX, CHANNEL_RINGS};
    bool recorded = options && stream_new(&exec_stream);
    log_child(t, EV_EXEC, exec_stream.number, 0);
    stream_commit();
    leave_memory(t);
    if (!recorded) return options ? fmt_into(options, cap, ",mode=run") : 0;
    char old[24] = "";
    if (!t->process->shares_memory) fmt_into(old, sizeof old, ",oldring=%u", the_stream.ring);
    return fmt_into(options, cap, "%s,stream=%lu,ring=%u,parent=%lu,outs=%lx:%lx", old, exec_stream.number,
                    exec_stream.ring, the_stream.number, t->process->out_fds[1][0], t->process->out_fds[2][0]);
}

static void exec_failed(struct thread *t) {
    if (exec_stream.ring < CHANNEL_RINGS) stream_discard(&exec_stream);
    come_back(t);
}

/* ---- processes that kill themselves ---- */

/* SIGKILL leaves no time for last words, and others may share what such a process leaves behind. */
static bool kills_itself(const struct thread *t, uint64_t nr, const uint64_t a[6]) {
    if (t->tgid == 1) return false; /* the kernel does not let the first process of a namespace do that */
    switch (nr) {
    case __NR_kill: return (int)a[1] == SIGKILL_ && (int)a[0] == t->tgid;
    case __NR_tkill: return (int)a[1] == SIGKILL_ && (int)a[0] == t->tid;
    case __NR_tgkill: return (int)a[2] == SIGKILL_ && (int)a[0] == t->tgid && (int)a[1] == t->tid;
    default: return false;
    }
}

static void kill_self(struct tblock *tb, uint64_t nr, const uint64_t a[6]) {
    death(tb->thread, SIGKILL_);
    for (;;) sys6((long)nr, (long)a[0], (long)a[1], (long)a[2], 0, 0, 0);
}

/* ---- the gate ---- */

/* True: the call is to be made again. */
static bool checkpoint_before_exit(struct tblock *tb, gaddr next) {
    if (!checkpoint_is_on || is_sharer(tb->thread) || tb->thread->legacy.under_way) return false;
    gaddr pc = tb->pc;
    gate_retry(tb, next);
    if (checkpoint_at_end(tb->thread, EVF_AT_GATE, CHECKPOINT_EXIT)) return true;
    tb->pc = pc;
    return false;
}

static void on_syscall(struct tblock *tb) {
    struct thread *t = tb->thread;
    uint64_t nr = tb->gpr[RAX], a[6];
    gate_args(tb, a);
    gaddr next = tb->pc;
    uint64_t flags = tb->rflags | (tb->trap_flag ? RFLAGS_TF : 0);
    t->awaits = AWAITS_CALL;
    checkpoint_op(t);
    if (unlikely(signals_is_waiting(t))) {
        gate_retry(tb, next);
        if (signals_will_kill(t) && checkpoint_at_end(t, EVF_AT_GATE, CHECKPOINT_SIGNAL)) return;
        signals_deliver_deferred(t, EVF_AT_GATE);
        stream_commit();
        return;
    }
    tb->pending = 0;
    /* a turn that ends at the gate needs no event: as if it had been stolen during the call; sched_yield ends it itself */
    if (unlikely(order_is_overdue()) && nr != __NR_sched_yield && order_should_yield(t)) {
        checkpoint_park(t, true);
        order_yield(t);
    }
    if (unlikely(shared_active) && shared_is_wanted()) shared_serve(t, EVF_AT_GATE, nr != __NR_sched_yield);
    if (traced_may(t)) {
        if (!traced_gate(tb, next)) return;
        nr = tb->gpr[RAX];
        gate_args(tb, a);
    }
    if (unlikely(t->seccomp.mode)) {
        long verdict = seccomp_apply(tb, nr, a);
        if (verdict == SECCOMP_DELIVERED) return;
        if (verdict != SECCOMP_ALLOWED) {
            finish(tb, next, flags, verdict);
            return;
        }
    }
    switch (nr) {
    case __NR_exit:
        if (order_is_last() && checkpoint_before_exit(tb, next)) return;
        exit_call(tb, (int)a[0]);
        break;
    case __NR_exit_group:
        if (checkpoint_before_exit(tb, next)) return;
        exit_group_call(tb, (int)a[0]);
        break;
    case __NR_fork:
    case __NR_vfork:
    case __NR_clone:
    case __NR_clone3:
        if (clone_flags(nr, a) & CLONE_VM)
            clone_call(tb, nr, a, next, flags);
        else
            fork_call(tb, nr, a, next, flags);
        break;
    case __NR_rt_sigreturn:
        log_call(t, nr, a, 0, 0);
        stream_commit();
        signals_sigreturn(tb, a);
        behind(t, nr);
        break;
    default:
        if (unlikely(kills_itself(t, nr, a))) kill_self(tb, nr, a);
        ordinary(tb, nr, a, next, flags);
    }
}

static long on_legacy(struct tblock *tb, uint32_t nr, const uint64_t a[6]) {
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

/* ---- other inputs ---- */

static void on_insn(struct tblock *tb) {
    struct recorded_insn in;
    struct ev_insn result;
    if (!recorded_insn_decode(tb, &in)) return;
    checkpoint_op(tb->thread);
    recorded_insn_execute(&in, tb, &result);
    cpu_level_mask(in.which, (uint32_t)tb->gpr[RAX], (uint32_t)tb->gpr[RCX], &result);
    struct event *e = event_new(tb->thread, EV_INSN, in.which, sizeof result);
    memcpy(e + 1, &result, sizeof result);
    stream_commit();
    recorded_insn_apply(&in, tb, &result);
}

static void on_signal(struct thread *t, struct pending_signal *s, uint8_t flags) {
    checkpoint_op(t);
    struct event *e =
        event_new(t, s->is_fault ? EV_FAULT : EV_SIGNAL, (uint16_t)s->info.signo, sizeof(struct ev_signal));
    struct ev_signal *v = (struct ev_signal *)(e + 1);
    e->flags = flags;
    memcpy(v->info, &s->info, sizeof v->info);
    v->err = t->fault_err;
    v->trapno = t->fault_trapno;
    v->cr2 = t->fault_cr2;
    stream_commit();
}

/* A fault that kills: a checkpoint in front of it, then the instruction tries again. */
static bool on_fault(struct thread *t, const struct pending_signal *s, bool kills) {
    return kills && !is_sharer(t) && checkpoint_at_end(t, EVF_AT_GATE, CHECKPOINT_SIGNAL);
}

static void on_tick_budget(struct tblock *tb) {
    struct thread *t = tb->thread;
    tb->pending = 0;
    checkpoint_consider(t, 0);
    if (unlikely(shared_active) && shared_is_wanted()) shared_serve(t, 0, true);
    if (traced_may(t)) traced_safepoint(t, 0);
    if (signals_is_waiting(t)) {
        if (signals_will_kill(t)) checkpoint_at_end(t, 0, CHECKPOINT_SIGNAL);
        signals_deliver_deferred(t, 0);
    } else if (order_should_yield(t)) {
        cache_idle(tb);
        checkpoint_op(t);
        snapshot_clear_host_words(t);
        event_new(t, EV_PREEMPT, 0, 0);
        stream_commit();
        t->awaits = AWAITS_TURN;
        checkpoint_park(t, true);
        order_yield(t);
        event_new(t, EV_TURN, 0, 0);
    }
    stream_commit();
    ticks_set_budget(tb, checkpoint_budget(order_budget(t)));
}

/* ---- start ---- */

static void log_map(struct thread *t, const struct mapping *m) {
    struct event *e = event_new(t, EV_MAP, 0, sizeof(struct ev_map));
    struct ev_map *v = (struct ev_map *)(e + 1);
    *v = (struct ev_map){.start = m->start,
                         .end = m->end,
                         .offset = m->offset,
                         .prot = m->prot | (m->was_writable ? MAP_UNSURE : 0),
                         .flags = m->flags,
                         .dev = m->file.dev,
                         .ino = m->file.ino,
                         .size = m->file.size,
                         .mtime_ns = m->file.mtime_ns,
                         .ctime_ns = m->file.ctime_ns};
    memcpy(v->name, m->name, sizeof v->name);
    if (m->file.ino) v->object = objects_name(&m->file);
}

/* Where the loader has written: the stack, and the last pages of data segments, cleared behind the file's end. */
static uint32_t log_contents(struct thread *t, const struct mapping *m, bool count) {
    if (strcmp(m->name, "[stack]") == 0) {
        gaddr from = PAGE_DOWN(t->tb->gpr[RSP]);
        return from < m->start ? 0 : event_memory(t, EV_MEMORY, from, m->end - from, count);
    }
    if (strcmp(m->name, "[vdso]") == 0) return event_memory(t, EV_MEMORY, m->start, m->end - m->start, count);
    if (m->file.ino && (m->prot & PROT_WRITE) && (m->flags & MAP_TYPE) == MAP_PRIVATE)
        return event_memory(t, EV_MEMORY, m->end - PAGE_SIZE, PAGE_SIZE, count);
    return 0;
}

void record_start(struct thread *t, const struct load_result *r, uint64_t parent) {
    for (size_t i = 0; i < ARRAY_LEN(waiting_calls); i++) waits[waiting_calls[i]] = true;
    t->number = 0;
    if (the_stream.number == 0) outputs_identify();
    order_start(t, the_channel->flags & CHANNEL_CHAOS);
    struct mapping m;
    uint32_t maps = 0, memory = 0;
    for (size_t i = 0; aspace_nth(i, &m); i++)
        if (!m.runtime) {
            maps++;
            memory += log_contents(t, &m, true);
        }
    struct event *e = event_new(t, EV_START, 0, sizeof(struct ev_start));
    struct ev_start *s = (struct ev_start *)(e + 1);
    *s = (struct ev_start){.pid = (uint32_t)SYS(getpid),
                           .ppid = (uint32_t)SYS(getppid),
                           .n_maps = maps,
                           .n_memory = memory,
                           .pc = t->tb->pc,
                           .rsp = t->tb->gpr[RSP],
                           .rflags = t->tb->rflags,
                           .brk_start = aspace_brk(0),
                           .sigmask = t->sigmask,
                           .parent = parent,
                           .auxv_start = r->auxv_start,
                           .auxv_end = r->auxv_end,
                           .arg_start = r->arg_start,
                           .arg_end = r->arg_end,
                           .env_start = r->env_start,
                           .env_end = r->env_end};
    for (int signo = 1; signo <= NSIG_MAX; signo++)
        if (t->process->action[signo].handler == 1) s->ignored |= SIG_BIT(signo);
    for (int fd = 0; fd < 64; fd++)
        for (int which = 1; which <= 2; which++)
            if (t->process->out_fds[which][0] >> fd & 1) s->out_fds[fd] = (uint8_t)which;
    memcpy(s->comm, r->comm, sizeof s->comm);
    fmt_into(s->exe, sizeof s->exe, "%s", the_runtime.exe_path);
    for (size_t i = 0; aspace_nth(i, &m); i++)
        if (!m.runtime) log_map(t, &m);
    for (size_t i = 0; aspace_nth(i, &m); i++)
        if (!m.runtime) log_contents(t, &m, false);
    stream_commit();
    checkpoint_start();
    ticks_set_budget(t->tb, checkpoint_budget(order_budget(t)));
}

const struct mode mode_record = {
    .name = "record",
    .policy = &policy_order,
    .kernel_signals = true,
    .hides_vdso = true,
    .same_x87 = true,
    .own_memory_only = true,
    .defers_signals = true,
    .syscall = on_syscall,
    .tick_budget = on_tick_budget,
    .insn = on_insn,
    .legacy = on_legacy,
    .fault = on_fault,
    .before_signal = traced_signal,
    .signal = on_signal,
    .trace_stop = trace_record_stop,
    .trace_turn = trace_record_turn,
    .trace_wrote = trace_record_wrote,
    .trace_go = trace_record_go,
    .thread_killed = thread_killed,
    .death = death,
    .keep_file = keep_file,
    .acquire = shared_acquire,
    .access = values_record,
    .tracks = shared_tracks,
    .before_clone = before_clone,
    .after_clone = after_clone,
    .thread_begin = thread_begin,
    .before_exec = before_exec,
    .exec_failed = exec_failed,
};
