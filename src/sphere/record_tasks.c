#include "sphere/record_parts.h"

#include <linux/sched.h>

#include "engine/cache.h"
#include "inproc/fmt.h"
#include "inproc/sys.h"
#include "recorder/order.h"
#include "sphere/checkpoint.h"
#include "sphere/event_log.h"
#include "sphere/file_changes.h"
#include "sphere/memory_hash.h"
#include "sphere/mode.h"
#include "sphere/schedule.h"
#include "sphere/shared.h"
#include "sphere/shared_left.h"
#include "sphere/sys/shared_inputs.h"
#include "sphere/sys/special.h"
#include "sphere/task_state.h"
#include "sphere/thread_end.h"
#include "sphere/traced.h"
#include "sphere/writers.h"

#define SIGKILL_ 9

static void log_child(struct thread *t, enum event_kind kind, uint64_t stream, uint32_t thread) {
    struct event *e = event_new(t, kind, 0, sizeof(struct ev_child));
    *(struct ev_child *)(e + 1) = (struct ev_child){.stream = stream, .thread = thread};
}

static struct event *log_exit(struct thread *t, enum event_kind kind, int status) {
    struct event *e = event_new(t, kind, 0, sizeof(struct ev_exit));
    *(struct ev_exit *)(e + 1) = (struct ev_exit){.status = status};
    return e;
}

static uint32_t n_rthreads = 1; /* numbers given out in this stream */
static struct stream child_stream;

/* In the child of a fork: no R-thread of its parent's, nor its pager, is here. */
static void begin_alone(struct thread *t) {
    t->number = 0;
    n_rthreads = 1;
    order_start(t, the_channel->flags & CHANNEL_CHAOS);
    shared_forget_pager();
}

static void forked_child(struct thread *t) {
    uint32_t parent_thread = t->number;
    uint64_t parent = the_stream.number;
    stream_attach_writer(fd_own() + 1, &child_stream);
    begin_alone(t);
    shared_disown_all();
    left_after_fork();
    struct event *e = event_new(t, EV_FORKED, 0, sizeof(struct ev_forked));
    *(struct ev_forked *)(e + 1) = (struct ev_forked){
        .pid = (uint32_t)SYS(getpid), .ppid = (uint32_t)SYS(getppid), .parent = parent, .parent_thread = parent_thread};
    checkpoint_start();
}

/* Nobody takes its events or checkpoints. */
static void forked_unrecorded(struct thread *t) {
    stream_abandon();
    begin_alone(t);
    shared_abandon();
    checkpoint_start();
}

/* No ring is left, or recording has ended: the child goes on by itself. */
static bool announce_fork(struct thread *t) {
    file_changes_share(t);
    bool recorded = stream_new(&child_stream);
    if (recorded) writers_fork(child_stream.ring);
    if (!recorded) child_stream = (struct stream){UINT64_MAX, CHANNEL_RINGS};
    log_child(t, EV_FORK, child_stream.number, 0);
    return recorded;
}

/* CLONE_VFORK with memory of its own: the child may need what others do meanwhile, or pages that are ours. */
static void await_left(struct thread *t) {
    if (!t->left_fd) return;
    t->turn_lent = true;
    checkpoint_park(t, true);
    order_enter_call(t, true);
    proc_await_left(t);
    order_leave_call(t);
    t->turn_lent = false;
    if (t->owes) checkpoint_pay(t);
}

static void fork_process(struct tblock *tb, uint64_t nr, uint64_t a[6], gaddr next, uint64_t flags) {
    struct thread *t = tb->thread;
    const uint64_t asked[6] = {a[0], a[1], a[2], a[3], a[4], a[5]};
    shared_leave();
    shared_before_fork(shared_claim);
    if (shared_active) {
        shared_start_pager(t);
        shared_hold_arguments(nr, a); /* the kernel does not mind words for ids that it cannot write to */
    }
    bool recorded = announce_fork(t);
    stream_commit();
    long ret = record_issue(tb, nr, a);
    if (ret == 0 && t->process->pid != 0 && recorded) forked_child(t);
    if (ret == 0 && !recorded) forked_unrecorded(t);
    if (ret < 0 && recorded) stream_discard(&child_stream);
    if (ret > 0 && recorded) stream_give(&child_stream, (uint32_t)ret);
    await_left(t);
    record_done(t, nr, asked, ret, 0);
    gate_finish(tb, next, flags, ret);
    stream_commit();
    record_behind(t, nr);
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
void record_before_clone(struct thread *t, struct thread *child) {
    child->number = n_rthreads++;
    child->awaits = AWAITS_TURN;
    checkpoint_park_new(child, child_fs_base(t->tb));
    order_add(child);
    log_child(t, EV_CLONE, the_stream.number, child->number);
    stream_commit();
    if (child->vforked) order_enter_call(t, true);
}

void record_after_clone(struct thread *t, struct thread *child, long ret) {
    if (ret > 0 && !child->vforked)
        child->tid = (int)ret; /* a checkpoint may come before it runs and finds out itself */
    if (child->vforked) {
        order_reclaim(t, child);
        order_leave_call(t);
        t->turn_lent = false;
    }
    if (ret < 0 || child->vforked) order_remove(child);
}

void record_thread_begin(struct thread *t) {
    order_take(t);
    event_new(t, EV_TURN, 0, 0);
    stream_commit();
}

static void clone_rthread(struct tblock *tb, uint64_t nr, uint64_t a[6], gaddr next, uint64_t flags) {
    struct thread *t = tb->thread;
    const uint64_t asked[6] = {a[0], a[1], a[2], a[3], a[4], a[5]};
    if (unlikely(shared_active)) shared_hold_arguments(nr, a);
    long ret = record_issue(tb, nr, a);
    record_done(t, nr, asked, ret, 0);
    gate_finish(tb, next, flags, ret);
    stream_commit();
    record_behind(t, nr);
}

void record_clone(struct tblock *tb, uint64_t nr, uint64_t a[6], gaddr next, uint64_t flags) {
    if (clone_flags(nr, a) & CLONE_VM)
        clone_rthread(tb, nr, a, next, flags);
    else
        fork_process(tb, nr, a, next, flags);
}

static void end_of_process(struct thread *t, int status) {
    process_clear_words(t->process);
    thread_leave_mutexes(t);
    log_exit(t, EV_END, status);
    stream_commit();
    shared_ended(); /* before the ring is another's, and our entry in the tables with it */
    stream_close();
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

void record_exit(struct tblock *tb, int status) {
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

void record_thread_killed(struct thread *t, int signo) { record_exit(t->tb, signo); }

bool record_is_sharer(const struct thread *t) { return t->shares_memory; }

void record_exit_group(struct tblock *tb, int status) {
    struct thread *t = tb->thread;
    if (record_is_sharer(t)) {
        end_of_sharer(t, (status & 0xff) << 8);
    } else {
        end_of_process(t, (status & 0xff) << 8);
    }
    sys_exit_group(tb, (uint64_t[6]){(uint64_t)status});
}

void record_death(struct thread *t, int signo) {
    if (record_is_sharer(t))
        end_of_sharer(t, signo);
    else
        end_of_process(t, signo);
}

/* ---- processes that were killed, but not their memory, which others have, too ---- */

/* Where it was is known to the tick; what is in memory says it exactly. Caller has the turn. */
static void bury(struct thread *t, bool ran) {
    struct ev_hash h;
    log_exit(t, EV_EXIT, SIGKILL_)->flags = EVF_AFTER;
    if (ran) memory_clear_host_words(); /* in the middle of an instruction */
    if (ran && memory_hash(&h)) *(struct ev_hash *)(event_new(t, EV_HASH, 0, sizeof h) + 1) = h;
    thread_clear_words_of_killed(t);
    checkpoint_forget(t);
    t->ended = true;
    order_remove(t);
    t->in_use = false;
}

/* 0: nobody who could be buried. Who has not begun yet has one thread. */
static int pid_of(const struct thread *t) {
    if (!t->in_use || t->ended || t->vforked || t->service) return 0;
    return t->tgid ? t->tgid : t->tid;
}

static void bury_process(int pid, const struct thread *ran) {
    for (struct thread *t = threads_first(); t; t = t->next)
        if (pid_of(t) == pid) bury(t, t == ran);
    stream_commit();
}

/* order_found_dead: it had the turn. What it did not commit did not happen. */
void record_found_dead(struct thread *dead, bool ran) {
    stream_roll_back();
    bury_process(dead->tgid, ran ? dead : NULL);
}

void record_bury_dead(struct thread *self) {
    for (struct thread *t = threads_first(); t; t = t->next) {
        int pid = pid_of(t);
        if (pid && pid != self->tgid && task_is_over(pid)) bury_process(pid, NULL);
    }
}

/* ---- exec ---- */

static struct stream exec_stream;

/* A process leaves memory that is another's, which goes on without it; a vfork child's parent takes the turn back itself. */
static void leave_memory(struct thread *t) {
    if (!record_is_sharer(t) || t->vforked) return;
    thread_clear_words(t);
    stream_commit();
    checkpoint_park(t, true);
    t->ended = true;
    order_remove(t);
    order_drop(t);
}

static void come_back(struct thread *t) {
    if (!record_is_sharer(t) || t->vforked) return;
    order_add(t);
    order_take(t);
    t->ended = false;
}

size_t record_before_exec(struct thread *t, char *options, size_t cap) {
    exec_stream = (struct stream){UINT64_MAX, CHANNEL_RINGS};
    bool recorded = options && stream_new(&exec_stream);
    log_child(t, EV_EXEC, exec_stream.number, 0);
    stream_commit();
    leave_memory(t);
    if (!recorded) return options ? fmt_into(options, cap, ",mode=run,unrecorded=%u", the_channel->shares) : 0;
    char old[24] = "";
    if (!t->shares_memory) fmt_into(old, sizeof old, ",oldring=%u", the_stream.ring);
    return fmt_into(options, cap, "%s,stream=%lu,ring=%u,parent=%lu,outs=%lx:%lx", old, exec_stream.number,
                    exec_stream.ring, the_stream.number, t->files->out_fds[1][0], t->files->out_fds[2][0]);
}

void record_exec_failed(struct thread *t) {
    if (exec_stream.ring < CHANNEL_RINGS) stream_discard(&exec_stream);
    come_back(t);
}

/* ---- processes that kill themselves ---- */

bool record_kills_itself(const struct thread *t, uint64_t nr, const uint64_t a[6]) {
    if (t->tgid == 1) return false; /* the kernel does not let the first process of a namespace do that */
    switch (nr) {
    case __NR_kill: return (int)a[1] == SIGKILL_ && (int)a[0] == t->tgid;
    case __NR_tkill: return (int)a[1] == SIGKILL_ && (int)a[0] == t->tid;
    case __NR_tgkill: return (int)a[2] == SIGKILL_ && (int)a[0] == t->tgid && (int)a[1] == t->tid;
    default: return false;
    }
}

void record_kill_self(struct tblock *tb, uint64_t nr, const uint64_t a[6]) {
    record_death(tb->thread, SIGKILL_);
    for (;;) sys6((long)nr, (long)a[0], (long)a[1], (long)a[2], 0, 0, 0);
}
