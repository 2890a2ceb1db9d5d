/* Processes and threads: clone, exit. */
#include <linux/fcntl.h>
#include <linux/sched.h>

#include "engine/cache.h"
#include "engine/kept.h"
#include "inproc/arena.h"
#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "log/events.h"
#include "sphere/code_watch.h"
#include "sphere/mode.h"
#include "sphere/sys/special.h"
#include "sphere/task_state.h"
#include "sphere/thread_end.h"
#include "sphere/trace_table.h"
#include "sphere/traced.h"

long sys_enosys(struct tblock *t, uint64_t a[6]) { return -ENOSYS; }

/* ---- clone ---- */

void thread_child(struct thread *t);

/* First thing that a new thread does, on its own runtime stack, all signals blocked. */
void thread_child(struct thread *t) {
    thread_adopt(t);
    t->kicked = true; /* until now a kick went to whoever made us */
    if (t->process->shares_memory && t->tgid == t->tid) {
        signals_catch_own(t->process);
        trace_add_member(t->tgid);
    }
    traced_born(t, &t->follow);
    if (t->service) {
        task_name_service();
        t->service(t);
    }
    signals_apply_mask(t);
    if (the_mode->thread_begin) the_mode->thread_begin(t);
    if (traced_may(t)) traced_safepoint(t, EVF_AFTER);
    engine_run(t->tb);
}

static void copy_registers(struct tblock *to, const struct tblock *from, gaddr stack) {
    const struct legacy_call *legacy = &from->thread->legacy;
    memcpy(to->gpr, legacy->under_way ? legacy->gpr : from->gpr, sizeof to->gpr);
    to->pc = from->pc;
    to->rflags = from->rflags;
    to->guest_gs = from->guest_gs;
    to->guest_gs_selector = from->guest_gs_selector;
    to->trap_flag = from->trap_flag && !from->thread->trace_step;
    to->gpr[RAX] = 0;
    if (!legacy->under_way) { /* as `syscall` leaves them */
        to->gpr[RCX] = from->pc;
        to->gpr[R11] = from->rflags;
    }
    if (stack) to->gpr[RSP] = stack;
}

/* The child has no other thread that could finish what is half done: every lock is held over fork, in the usual order. */
static void hold_everything(struct process *p) {
    lock_take(&p->lock);
    seccomp_hold();
    lock_take(&cache_lock);
    threads_hold();
    arena_hold();
}

static void release_everything(struct process *p) {
    arena_release();
    threads_release();
    lock_drop(&cache_lock);
    seccomp_release();
    lock_drop(&p->lock);
}

/* ---- CLONE_VFORK with memory of its own ---- */

/* The kernel would keep the parent in the call, with all locks and, recording, the turn: the child might wait for a page that it has.
 * So the parent waits for the end of a pipe whose other end is the child's, until that executes something or ends. */
static int held_end = -1; /* ours, in such a child */

static int above_own(int fd) {
    long moved = SYS(fcntl, fd, F_DUPFD_CLOEXEC, fd_own() + (int)the_runtime.own_fds);
    SYS(close, fd);
    return (int)moved;
}

/* False: the kernel has to wait. Caller holds everything, so no other child inherits the ends. */
static bool make_ends(uint64_t *kernel_flags, int ends[2]) {
    if (!(*kernel_flags & CLONE_VFORK) || SYS(pipe2, ends, O_CLOEXEC) < 0) return false;
    ends[0] = above_own(ends[0]);
    ends[1] = above_own(ends[1]);
    if (ends[0] < 0 || ends[1] < 0) {
        SYS(close, ends[0] < 0 ? ends[1] : ends[0]);
        return false;
    }
    *kernel_flags &= ~(uint64_t)CLONE_VFORK;
    return true;
}

static void keep_end(struct thread *t, bool is_child, bool made, const int ends[2]) {
    if (is_child && held_end >= 0) SYS(close, held_end); /* of who was our parent's parent */
    if (is_child) held_end = made ? ends[1] : -1;
    if (!made) return;
    SYS(close, ends[is_child ? 0 : 1]);
    t->left_fd = is_child ? 0 : ends[0];
}

void proc_await_left(struct thread *t) {
    char none;
    if (!t->left_fd) return;
    signals_block_all();
    while (SYS(read, t->left_fd, &none, 1) == -EINTR) continue;
    SYS(close, t->left_fd);
    t->left_fd = 0;
    signals_apply_mask(t);
}

/* A child with its own copy of everything: it goes on right here. kernel_flags: where args has the flags. */
static long fork_here(struct tblock *t, long nr, const uint64_t args[6], uint64_t *kernel_flags, uint64_t flags,
                      gaddr stack, gaddr tid_word) {
    struct trace_follow follow = traced_follows(t->thread, flags);
    uint64_t all =
        ~0ull; /* synchronous ones, too: what is queued at the fork is the parent's, what comes later the child's */
    SYS(rt_sigprocmask, 2 /* SIG_SETMASK */, &all, 0, 8);
    trace_add_member(t->thread->tgid);
    hold_everything(t->thread->process);
    int ends[2];
    bool made = make_ends(kernel_flags, ends);
    long ret = sys6(nr, (long)args[0], (long)args[1], (long)args[2], (long)args[3], (long)args[4], (long)args[5]);
    keep_end(t->thread, ret == 0, made, ends);
    if (ret == 0) {
        threads_after_fork(t->thread);
        if (flags & CLONE_CLEAR_SIGHAND) signals_clear_handlers(t->thread->process);
        signals_catch_own(t->thread->process);
        t->thread->process->pid = (int)SYS(getpid);
        if (the_mode->before_clone) { /* cleared by us (thread_end.h) */
            if (flags & CLONE_CHILD_CLEARTID) thread_set_tid_address(t->thread, tid_word);
            SYS(set_tid_address, 0);
        }
        if (stack) t->gpr[RSP] = stack;
    }
    release_everything(t->thread->process);
    if (ret == 0) {
        trace_add_member(t->thread->tgid);
        traced_born(t->thread, &follow);
    } else if (ret > 0) {
        trace_add_member((int)ret); /* whoever hears of it from us may want to trace it at once */
        traced_has_child(t->thread, &follow, (int)ret);
    }
    signals_apply_mask(t->thread);
    if (!the_mode->before_clone) proc_await_left(t->thread); /* a recording gives up the turn first */
    return ret;
}

/* What the kernel would write when the child starts and ends, the runtime does at moments of its own choice (thread_end.h). */
static void take_over_tid_words(struct thread *child, uint64_t *flags, gaddr word, gaddr *set_word) {
    if (*flags & CLONE_CHILD_CLEARTID) child->clear_tid = word;
    if (*flags & CLONE_CHILD_SETTID) *set_word = word;
    *flags &= ~(uint64_t)(CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID);
}

static void write_tid(gaddr word, long tid) {
    uint32_t value = (uint32_t)tid;
    if (!word || tid <= 0) return;
    code_watch_before_kernel_write(word, 4);
    guest_write(word, &value, 4);
}

long sys_personality(struct tblock *t, uint64_t a[6]) {
    long ret = gate_syscall(__NR_personality, a);
    if (!sys_failed(ret)) thread_set_personality(t->thread, a[0]);
    return ret;
}

struct thread *thread_make_child(struct tblock *t, uint64_t flags, gaddr stack) {
    struct thread *self = t->thread;
    struct thread *child = thread_new(self->process, self->files);
    if (!child) return NULL;
    bool new_process = !(flags & CLONE_SIGHAND);
    if (new_process) {
        struct process *p = flags & CLONE_VFORK ? thread_own_process(child) : arena_alloc(sizeof *p);
        lock_take(&self->process->lock);
        memcpy(p, self->process, sizeof *p);
        lock_drop(&self->process->lock);
        p->lock.word = 0;
        p->shares_memory = true;
        if (flags & CLONE_CLEAR_SIGHAND) signals_clear_handlers(p);
        child->process = p;
    }
    if (!(flags & CLONE_FILES)) {
        child->files = flags & CLONE_VFORK ? thread_own_files(child) : arena_alloc(sizeof *child->files);
        *child->files = *self->files;
    }
    child->sigmask = self->sigmask;
    child->seccomp = self->seccomp;
    child->reads_imply_exec = self->reads_imply_exec;
    child->tsc_faults = self->tsc_faults;
    memcpy(child->debugged.name, self->debugged.name, sizeof child->debugged.name);
    if (!(flags & CLONE_VM) || (flags & CLONE_VFORK)) child->altstack = self->altstack;
    child->vforked = flags & CLONE_VFORK;
    child->shares_memory = self->shares_memory || !(flags & CLONE_THREAD);
    copy_registers(child->tb, t, stack);
    return child;
}

/* The kernel would not let us tell a tracer of the child before that has left our memory. */
static void wait_ourselves(struct thread *child, uint64_t *kernel_flags, uint64_t *args_tid) {
    *kernel_flags = (*kernel_flags & ~(uint64_t)CLONE_VFORK) | CLONE_CHILD_CLEARTID;
    *args_tid = (uint64_t)&child->not_left;
    child->not_left = 1;
    child->tells_leave = true;
}

/* The kernel would forget our handlers, too: in the child the program's are cleared by us. */
static uint64_t keep_our_handlers(uint64_t flags) {
    return flags & CLONE_SIGHAND ? flags : flags & ~(uint64_t)CLONE_CLEAR_SIGHAND;
}

/* A child in the same address space: it needs a thread block of its own. args_tid, args_stack: the kernel's arguments. */
static long clone_vm(struct tblock *t, long nr, uint64_t args[6], uint64_t *kernel_flags, uint64_t signal,
                     uint64_t *args_tid, gaddr stack, uint64_t *args_stack, uint64_t *args_stack_size) {
    uint64_t flags = *kernel_flags;
    gaddr set_word = 0;
    struct thread *self = t->thread;
    struct thread *child = thread_make_child(t, flags, stack);
    if (!child) return -EAGAIN;
    child->follow = traced_follows(self, flags | signal);
    struct trace_follow follow = child->follow;
    *kernel_flags = keep_our_handlers(flags);
    uint64_t top = child->tb->rt_sp;
    if (args_stack_size) {
        *args_stack_size = 65536;
        *args_stack = top - 65536;
    } else {
        *args_stack = top;
    }
    signals_block_all();
    if (!(flags & CLONE_THREAD)) trace_add_member(self->tgid);
    child->tb->epoch = 0; /* until it says otherwise */
    if (the_mode->before_clone) {
        take_over_tid_words(child, kernel_flags, *args_tid, &set_word);
        the_mode->before_clone(self, child);
    }
    bool watched = traced_watches_vfork(&follow) && !(*kernel_flags & (CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID));
    if (watched) wait_ourselves(child, kernel_flags, args_tid);
    long ret = clone_thread(nr, args, child);
    if (watched && ret > 0) traced_vforked(self, &follow, (int)ret, &child->not_left);
    write_tid(set_word, ret);
    if (the_mode->after_clone) the_mode->after_clone(self, child, ret);
    if (ret < 0 || (flags & CLONE_VFORK)) child->in_use = false; /* a vfork child has left our memory by now */
    signals_apply_mask(self);
    if (ret > 0 && !(flags & CLONE_THREAD)) trace_add_member((int)ret);
    if (ret > 0 && !watched) traced_has_child(self, &follow, (int)ret);
    return ret;
}

long sys_clone(struct tblock *t, uint64_t a[6]) {
    uint64_t flags = (uint32_t)a[0];
    uint64_t args[6] = {flags, 0, a[2], a[3], a[4], 0};
    if (!(flags & CLONE_VM)) return fork_here(t, __NR_clone, args, &args[0], flags, a[1], a[3]);
    return clone_vm(t, __NR_clone, args, &args[0], 0, &args[3], a[1], &args[1], NULL);
}

long sys_clone3(struct tblock *t, uint64_t a[6]) {
    struct clone_args ca;
    memset(&ca, 0, sizeof ca);
    if (a[1] > PAGE_SIZE) return -E2BIG;
    if (a[1] < 64) return -EINVAL;
    for (uint64_t i = sizeof ca; i < a[1]; i++) {
        uint8_t rest;
        if (!guest_read(&rest, a[0] + i, 1)) return -EFAULT;
        if (rest) return -E2BIG;
    }
    size_t size = MIN(a[1], sizeof ca);
    if (!guest_read(&ca, a[0], size)) return -EFAULT;
    if ((ca.stack == 0) != (ca.stack_size == 0)) return -EINVAL; /* the kernel will not see these as given */
    gaddr stack = ca.stack ? ca.stack + ca.stack_size : 0;
    uint64_t args[6] = {(uint64_t)&ca, size, 0, 0, 0, 0};
    if (!(ca.flags & CLONE_VM)) {
        uint64_t flags = ca.flags | ca.exit_signal;
        ca.stack = ca.stack_size = 0;
        ca.flags = keep_our_handlers(ca.flags);
        return fork_here(t, __NR_clone3, args, (uint64_t *)&ca.flags, flags, stack, ca.child_tid);
    }
    return clone_vm(t, __NR_clone3, args, (uint64_t *)&ca.flags, ca.exit_signal, (uint64_t *)&ca.child_tid, stack,
                    (uint64_t *)&ca.stack, (uint64_t *)&ca.stack_size);
}

long sys_fork(struct tblock *t, uint64_t a[6]) {
    uint64_t args[6] = {0};
    return fork_here(t, __NR_fork, args, &args[0], 17 /* SIGCHLD */, 0, 0);
}

long sys_vfork(struct tblock *t, uint64_t a[6]) {
    uint64_t args[6] = {CLONE_VM | CLONE_VFORK | 17 /* SIGCHLD */, 0, 0, 0, 0, 0};
    return clone_vm(t, __NR_clone, args, &args[0], 0, &args[3], 0, &args[1], NULL);
}

/* ---- exit ---- */

long sys_exit(struct tblock *t, uint64_t a[6]) {
    traced_thread_ends(t->thread, ((int)a[0] & 0xff) << 8);
    thread_exit(t->thread, (int)a[0]);
}

long sys_exit_group(struct tblock *t, uint64_t a[6]) {
    if (unlikely(stats_wanted)) engine_report();
    if (!t->thread->shares_memory) kept_save();
    if (the_policy->thread_end) the_policy->thread_end(t);
    traced_process_ends(t->thread, ((int)a[0] & 0xff) << 8);
    for (;;) SYS(exit_group, a[0]);
}
