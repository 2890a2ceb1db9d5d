#include "sphere/replay_parts.h"

#include <linux/fcntl.h>
#include <linux/sched.h>

#include "engine/cache.h"
#include "engine/kept.h"
#include "inproc/arena.h"
#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/debug.h"
#include "sphere/file_changes.h"
#include "sphere/fork_advice.h"
#include "sphere/page_log.h"
#include "sphere/runtime.h"
#include "sphere/schedule.h"
#include "sphere/seccomp.h"
#include "sphere/sys/special.h"
#include "sphere/thread_end.h"

/* The process has ended, as the next event says: a debugger may still look at it. */
static void ended(struct thread *t, int status) {
    if (!debug_is_on) return;
    stream_take();
    debug_end(t, WORKER_EXITED, status, "");
}

void replay_death(struct thread *t, int signo) {
    if (debug_is_diverted) debug_end(t, WORKER_EXITED, signo, "");
    if (!t->shares_memory) process_clear_words(t->process);
    const struct event *e = replay_next(t);
    if (e->kind == EV_EXIT) { /* a process that shares our memory */
        stream_take();
        thread_clear_words(t);
        replay_leave_to_others(t);
    }
    replay_verify(t, e, EV_END, "death by a signal");
    thread_leave_mutexes(t);
    int status = ((const struct ev_exit *)(e + 1))->status;
    if (status != signo) replay_diverged(t, e, "signal", (uint64_t)status, (uint64_t)signo);
    ended(t, status);
    replay_leave(RING_ENDED_PROCESS, status, 0);
}

void replay_enter_turn(void) {
    struct thread *t = thread_self();
    const struct event *e = replay_next(t);
    replay_verify(t, e, EV_TURN, "begin of an R-thread");
    stream_take();
    replay_arm(t);
    engine_run(t->tb);
}

struct clone_request {
    uint64_t flags, stack, tls, child_tid;
};

static struct clone_request read_clone(uint64_t nr, const uint64_t a[6]) {
    struct clone_request r = {0};
    if (nr == __NR_vfork) r.flags = CLONE_VM | CLONE_VFORK;
    if (nr == __NR_clone) r = (struct clone_request){(uint32_t)a[0], a[1], a[4], a[3]};
    if (nr == __NR_clone3) {
        struct clone_args ca;
        memset(&ca, 0, sizeof ca);
        if (guest_read(&ca, a[0], MIN(a[1], sizeof ca)))
            r = (struct clone_request){ca.flags, ca.stack ? ca.stack + ca.stack_size : 0, ca.tls, ca.child_tid};
    }
    return r;
}

static struct thread *make_rthread(struct tblock *tb, const struct clone_request *r, uint32_t number) {
    struct thread *child = thread_make_child(tb, r->flags, r->stack);
    if (!child) die("no memory for another R-thread");
    child->number = number;
    child->tid = 0;
    if (r->flags & CLONE_CHILD_CLEARTID) child->clear_tid = r->child_tid;
    schedule_add(child, replay_enter_turn, r->flags & CLONE_SETTLS ? r->tls : schedule_fs_base());
    return child;
}

static void clone_rthread(struct tblock *tb, uint64_t nr, uint64_t a[6], gaddr next, uint64_t flags,
                          struct clone_request r) {
    struct thread *t = tb->thread, *child = NULL;
    const struct event *e = replay_next(t);
    if (e->kind == EV_CLONE) {
        replay_verify(t, e, EV_CLONE, "clone");
        uint32_t number = ((const struct ev_child *)(e + 1))->thread;
        stream_take();
        if (replay_find_thread(number)) replay_diverged(t, NULL, "number of a new R-thread", number, number);
        child = make_rthread(tb, &r, number);
        for (e = replay_next(t); e->kind == EV_STOP; e = replay_next(t))
            replay_stop(t, e); /* while it waits for a vfork child */
    }
    struct ev_syscall s = replay_take_call(t, e, nr, a);
    if (child && s.ret < 0) child->in_use = false;
    if (child && (r.flags & CLONE_VFORK)) child->awaits = AWAITS_NOTHING; /* has gone, maybe killed */
    if (child && s.ret > 0 && !(r.flags & CLONE_VFORK)) child->tid = (int)s.ret;
    replay_take_outs(t, s.outs);
    gate_finish(tb, next, flags, s.ret);
    replay_arm(t);
}

static void end_process(struct thread *t, int status) __attribute__((noreturn));
static void end_process(struct thread *t, int status) {
    ended(t, status);
    kept_save();
    replay_leave(RING_ENDED_PROCESS, status, 0);
    __builtin_unreachable();
}

static bool is_last(const struct thread *self) {
    for (struct thread *t = threads_first(); t; t = t->next)
        if (t != self && t->in_use && t->scheduled) return false;
    return true;
}

void replay_exit(struct thread *t) {
    bool ends_all = t->tb->gpr[RAX] == __NR_exit_group && !t->shares_memory;
    if (ends_all || is_last(t)) process_clear_words(t->process);
    const struct event *e = replay_next(t);
    int status = ((const struct ev_exit *)(e + 1))->status;
    if (e->kind == EV_END) {
        replay_verify(t, e, EV_END, "exit");
        thread_leave_mutexes(t);
        end_process(t, status);
    }
    replay_verify(t, e, EV_EXIT, "exit");
    stream_take();
    thread_clear_words(t);
    replay_leave_to_others(t);
}

void replay_thread_killed(struct thread *t, int signo) { replay_exit(t); }

static void forked_child(struct thread *t, uint64_t stream) {
    threads_after_fork(t);
    if (!stream_attach_reader(fd_own() + 1, stream)) { /* killed before it had begun */
        replay_note_cut();
        replay_note_end();
        SYS(exit_group, 0);
    }
    shared_disown_all();
    page_log_forget();
    t->number = 0;
    replay_count_anew(t);
    const struct event *e = stream_peek();
    if (!e) replay_cut_off();
    if (e->kind != EV_FORKED) replay_diverged(t, e, "begin of a process", e->kind, EV_FORKED);
    t->tid = t->tgid = t->process->pid = (int)((const struct ev_forked *)(e + 1))->pid;
    stream_take();
}

/* True: this is the child. */
static bool do_fork(struct thread *t, const struct event *e) {
    replay_verify(t, e, EV_FORK, "fork");
    uint64_t stream = ((const struct ev_child *)(e + 1))->stream;
    const struct event *then = stream_peek_second();
    bool failed = then && then->thread == t->number && then->kind == EV_SYSCALL &&
                  ((const struct ev_syscall *)(then + 1))->ret < 0;
    stream_take();
    shared_before_fork(NULL);
    if (failed || stream == UINT64_MAX) return false;
    if (debug_is_on) { /* one process is debugged: the one that the child becomes, or its parent */
        if (!debug_follows(stream)) return false;
        stream_done(RING_ENDED_EXEC, 0, 0);
        fork_advice_inherit();
        forked_child(t, stream);
        debug_begin(t);
        return true;
    }
    file_changes_before_fork();
    long pid = SYS(fork);
    if (pid < 0) die("cannot fork to replay a process (error %ld)", -pid);
    file_changes_after_fork(pid == 0);
    if (pid == 0) forked_child(t, stream);
    return pid == 0;
}

static void fork_process(struct tblock *tb, uint64_t nr, uint64_t a[6], gaddr next, uint64_t flags,
                         struct clone_request r) {
    struct thread *t = tb->thread;
    const struct event *e = replay_next(t);
    if (e->kind == EV_FORK) {
        if (do_fork(t, e)) {
            if (r.flags & CLONE_CHILD_CLEARTID) thread_set_tid_address(t, r.child_tid);
            if (r.flags & CLONE_CLEAR_SIGHAND) signals_clear_handlers(t->process);
            if (r.stack) tb->gpr[RSP] = r.stack;
        }
        e = replay_next(t);
    }
    struct ev_syscall s = replay_take_call(t, e, nr, a);
    replay_take_outs(t, s.outs);
    gate_finish(tb, next, flags, s.ret);
    replay_arm(t);
}

void replay_clone(struct tblock *tb, uint64_t nr, uint64_t a[6], gaddr next, uint64_t flags) {
    struct clone_request r = read_clone(nr, a);
    if (r.flags & CLONE_VM)
        clone_rthread(tb, nr, a, next, flags, r);
    else
        fork_process(tb, nr, a, next, flags, r);
}

/* Filters of the program live through execve. */
static void exec_runtime(struct thread *t, uint64_t stream) __attribute__((noreturn));
static void exec_runtime(struct thread *t, uint64_t stream) {
    char options[sizeof the_runtime.options + 64];
    fmt_into(options, sizeof options, "%s,rtfd=%d,stream=%lu", the_runtime.options, fd_own(), stream);
    const struct seccomp *s = &t->seccomp;
    const char **argv = arena_pages(((size_t)s->count + 8) * sizeof *argv), **v = argv;
    *v++ = "reprise-rt", *v++ = "--start", *v++ = options, *v++ = "replay";
    for (int i = 0; i < s->count; i++) {
        const struct seccomp_filter *f = seccomp_nth(s, i);
        char *text = arena_pages(seccomp_text_size(f));
        seccomp_to_text(f, text);
        *v++ = text;
    }
    *v++ = "--", *v++ = "replay";
    const char *envp[] = {NULL};
    long ret = exec_fd(fd_own(), (gaddr)argv, (gaddr)envp);
    die("cannot start the runtime for the next program (error %ld)", -ret);
}

/* Comes back if the program that is left goes on for other R-threads: the next event of t, if there is one, says that the call
 * failed after all. */
static void exec_again(struct thread *t, uint64_t stream) {
    if (debug_is_on) {
        if (!t->shares_memory) debug_end(t, WORKER_EXEC, 0, "");
        replay_leave_to_others(t);
    }
    if (!t->shares_memory) {
        kept_save();
        if (stream == UINT64_MAX) replay_note_cut();
        replay_note_end();
        stream_done(stream == UINT64_MAX ? RING_ENDED_CUT : RING_ENDED_EXEC, 0, replay_count_all());
        if (stream == UINT64_MAX) SYS(exit_group, 0);
        exec_runtime(t, stream);
    }
    if (stream != UINT64_MAX && SYS(fork) == 0) exec_runtime(t, stream);
    if (t->vforked) replay_leave_to_others(t);
    thread_clear_words(t);
}

/* Whether the exec that is next in the log failed: then its result follows. */
static bool exec_fails(struct thread *t, uint64_t nr) {
    const struct event *then = stream_peek_second();
    return then && then->thread == t->number && then->kind == EV_SYSCALL && then->code == (uint16_t)nr;
}

/* Others may run, and make events, before it is known whether the call failed. */
static bool is_leaving_others(const struct thread *t) { return t->shares_memory && !t->vforked; }

void replay_exec(struct tblock *tb, uint64_t nr, uint64_t a[6], gaddr next, uint64_t flags) {
    struct thread *t = tb->thread;
    const struct event *e = replay_next(t);
    if (e->kind == EV_EXEC) {
        replay_verify(t, e, EV_EXEC, "exec");
        uint64_t stream = ((const struct ev_child *)(e + 1))->stream;
        bool fails = exec_fails(t, nr);
        stream_take();
        if (!fails || is_leaving_others(t)) exec_again(t, stream);
        e = replay_next(t);
    }
    replay_ordinary(tb, e, nr, a, next, flags);
}
