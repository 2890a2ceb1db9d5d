#include "sphere/record.h"

#include <linux/mman.h>

#include "engine/cache.h"
#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "recorder/order.h"
#include "sphere/aspace.h"
#include "sphere/borrowed.h"
#include "sphere/checkpoint.h"
#include "sphere/cpu_level.h"
#include "sphere/event_log.h"
#include "sphere/mode.h"
#include "sphere/objects.h"
#include "sphere/outputs.h"
#include "sphere/packet_ring.h"
#include "sphere/record_parts.h"
#include "sphere/recorded_insn.h"
#include "sphere/runtime.h"
#include "sphere/shared.h"
#include "sphere/shared_values.h"
#include "sphere/signals.h"
#include "sphere/snapshot.h"
#include "sphere/trace_record.h"
#include "sphere/traced.h"
#include "sphere/writers.h"

#define SIGBUS_ 7

/* ---- the gate ---- */

/* True: the call is to be made again. */
static bool checkpoint_before_exit(struct tblock *tb, gaddr next) {
    if (!checkpoint_is_on || record_is_sharer(tb->thread) || tb->thread->legacy.under_way) return false;
    if (tb->thread->tracee) return false; /* its tracer has been shown the call */
    gaddr pc = tb->pc;
    gate_retry(tb, next);
    if (checkpoint_at_end(tb->thread, EVF_AT_GATE, CHECKPOINT_EXIT)) return true;
    tb->pc = pc;
    return false;
}

/* False: a filter of the program's has answered the call, which leaves an event like any other: others may have had the turn. */
static bool filters_allow(struct tblock *tb, uint64_t *nr, uint64_t a[6], gaddr next, uint64_t flags) {
    long verdict = seccomp_apply(tb, nr, a);
    if (verdict == SECCOMP_ALLOWED || verdict == SECCOMP_DELIVERED) return verdict == SECCOMP_ALLOWED;
    if (verdict == SECCOMP_ABORTED) {
        record_aborted(tb, *nr, next);
        return false;
    }
    record_done(tb->thread, *nr, a, verdict, EVF_ANSWERED);
    gate_finish(tb, next, flags, verdict);
    stream_commit();
    if (traced_may(tb->thread)) traced_after_call(tb->thread, *nr);
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
    t->debugged.in_call = true;
    tb->pending = 0; /* before we look: what comes later sets it again, and the call is not made */
    if (unlikely(signals_is_waiting(t))) {
        gate_retry(tb, next);
        if (signals_will_kill(t) && checkpoint_at_end(t, EVF_AT_GATE, CHECKPOINT_SIGNAL)) return;
        signals_deliver_deferred(t, EVF_AT_GATE);
        stream_commit();
        return;
    }
    /* a turn that ends at the gate needs no event: as if it had been stolen during the call; sched_yield ends it itself */
    if (unlikely(order_is_overdue()) && nr != __NR_sched_yield && order_should_yield(t)) {
        checkpoint_park(t, true);
        order_yield(t);
    }
    if (unlikely(writers_due)) {
        checkpoint_park(t, true);
        writers_tell(t);
    }
    if (unlikely(shared_active) && shared_is_wanted()) shared_serve(t, EVF_AT_GATE, nr != __NR_sched_yield);
    if (traced_may(t)) {
        if (!traced_gate(tb, next)) return;
        nr = tb->gpr[RAX];
        gate_args(tb, a);
    }
    if (unlikely(t->seccomp.mode) && !filters_allow(tb, &nr, a, next, flags)) return;
    switch (nr) {
    case __NR_exit:
        if (!order_is_last()) record_bury_dead(t);
        if (order_is_last() && checkpoint_before_exit(tb, next)) return;
        record_exit(tb, (int)a[0]);
        break;
    case __NR_exit_group:
        if (checkpoint_before_exit(tb, next)) return;
        record_exit_group(tb, (int)a[0]);
        break;
    case __NR_fork:
    case __NR_vfork:
    case __NR_clone:
    case __NR_clone3: record_clone(tb, nr, a, next, flags); break;
    case __NR_rt_sigreturn:
        record_call(t, nr, a, 0, 0);
        stream_commit();
        signals_sigreturn(tb, a);
        record_behind(t, nr);
        break;
    case __NR_mmap:
    case __NR_open:
    case __NR_openat:
    case __NR_creat:
    case __NR_truncate:
        if (writers_foresee(nr, a)) {
            checkpoint_park(t, true);
            writers_tell(t);
        } /* fall through */
    default:
        if (unlikely(record_kills_itself(t, nr, a))) record_kill_self(tb, nr, a);
        record_ordinary(tb, nr, a, next, flags);
    }
}

/* ---- other inputs ---- */

static void on_insn(struct tblock *tb) {
    struct recorded_insn in;
    struct ev_insn result;
    if (!recorded_insn_decode(tb, &in)) return;
    if (unlikely(tb->thread->tsc_faults) && recorded_insn_is_tsc(&in)) {
        recorded_insn_forbid(tb);
        return;
    }
    checkpoint_op(tb->thread);
    recorded_insn_execute(&in, tb, &result);
    cpu_level_mask(in.which, (uint32_t)tb->gpr[RAX], (uint32_t)tb->gpr[RCX], &result);
    struct event *e = event_new(tb->thread, EV_INSN, in.which, sizeof result);
    memcpy(e + 1, &result, sizeof result);
    stream_commit();
    recorded_insn_apply(&in, tb, &result);
}

#define SPINS_MOST 16 /* pauses; each takes some 100 ns here, and handing over the turn some 10 us */

/* Who spins with the turn waits in vain for one without it: the turn ends at the next tick point. */
static void on_spins(struct tblock *tb) {
    struct thread *t = tb->thread;
    if (!order_should_yield(t) || ++t->spins < SPINS_MOST) return;
    t->spins = 0;
    ticks_set_budget(tb, 0);
}

static void on_x87_pointers(struct tblock *tb, uint64_t pointers[2]) {
    if (!pointers[0] && !pointers[1]) return; /* forgotten */
    checkpoint_op(tb->thread);
    struct event *e = event_new(tb->thread, EV_INSN, RECORDED_X87, sizeof(struct ev_insn));
    *(struct ev_insn *)(e + 1) = (struct ev_insn){.rax = pointers[0], .rbx = pointers[1]};
    stream_commit();
}

static bool on_signal(struct thread *t, struct pending_signal *s, uint8_t flags) {
    if (!(flags & EVF_AT_GATE)) checkpoint_op(t); /* there it is the call, which others may have run during */
    t->debugged.in_call = false;
    struct event *e =
        event_new(t, s->is_fault ? EV_FAULT : EV_SIGNAL, (uint16_t)s->info.signo, sizeof(struct ev_signal));
    struct ev_signal *v = (struct ev_signal *)(e + 1);
    e->flags = flags;
    memcpy(v->info, &s->info, sizeof v->info);
    v->err = t->fault_err;
    v->trapno = t->fault_trapno;
    v->cr2 = t->fault_cr2;
    stream_commit();
    if (unlikely(borrowed_any) && s->is_fault && s->info.signo == SIGBUS_) borrowed_bus(t->fault_cr2);
    return true;
}

/* A fault that kills: a checkpoint in front of it, then the instruction tries again. */
static bool on_fault(struct thread *t, const struct pending_signal *s, bool kills) {
    return kills && !record_is_sharer(t) && checkpoint_at_end(t, EVF_AT_GATE, CHECKPOINT_SIGNAL);
}

uint64_t record_budget(struct thread *t) { return packet_ring_budget(checkpoint_budget(order_budget(t))); }

static void on_tick_budget(struct tblock *tb) {
    struct thread *t = tb->thread;
    tb->pending = 0;
    checkpoint_consider(t, 0);
    if (unlikely(shared_active) && shared_is_wanted()) shared_serve(t, 0, true);
    if (traced_may(t)) traced_safepoint(t, 0);
    if (unlikely(packet_ring_any)) packet_ring_at_tick(t);
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
    ticks_set_budget(tb, record_budget(t));
}

/* ---- start ---- */

static void log_map(struct thread *t, const struct mapping *m) {
    struct event *e = event_new(t, EV_MAP, 0, sizeof(struct ev_map));
    *(struct ev_map *)(e + 1) = objects_map_of(m);
}

/* The replay will write there, so it is the process's own page from then on, which hashes of memory tell (record --check). */
static void touch(gaddr page) {
    volatile uint8_t *p = (volatile uint8_t *)page;
    if (the_channel->flags & CHANNEL_CHECK) *p = *p;
}

/* Where the loader has written: the stack, and the last pages of data segments, cleared behind the file's end. */
static uint32_t log_contents(struct thread *t, const struct mapping *m, bool count) {
    if (strcmp(m->name, "[stack]") == 0) {
        gaddr from = PAGE_DOWN(t->tb->gpr[RSP]);
        return from < m->start ? 0 : event_memory(t, EV_MEMORY, from, m->end - from, count);
    }
    if (strcmp(m->name, "[vdso]") == 0) return event_memory(t, EV_MEMORY, m->start, m->end - m->start, count);
    if (!m->file.ino || !(m->prot & PROT_WRITE) || (m->flags & MAP_TYPE) != MAP_PRIVATE) return 0;
    touch(m->end - PAGE_SIZE);
    return event_memory(t, EV_MEMORY, m->end - PAGE_SIZE, PAGE_SIZE, count);
}

void record_start(struct thread *t, const struct load_result *r, uint64_t parent) {
    record_calls_start();
    t->number = 0;
    if (the_stream.number == 0) outputs_identify();
    order_found_dead = record_found_dead;
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
            if (t->files->out_fds[which][0] >> fd & 1) s->out_fds[fd] = (uint8_t)which;
    memcpy(s->comm, r->comm, sizeof s->comm);
    fmt_into(s->exe, sizeof s->exe, "%s", the_runtime.exe_path);
    for (size_t i = 0; aspace_nth(i, &m); i++)
        if (!m.runtime) log_map(t, &m);
    for (size_t i = 0; aspace_nth(i, &m); i++)
        if (!m.runtime) log_contents(t, &m, false);
    stream_commit();
    checkpoint_start();
    writers_start();
    ticks_set_budget(t->tb, record_budget(t));
}

const struct mode mode_record = {
    .name = "record",
    .policy = &policy_order,
    .kernel_signals = true,
    .hides_vdso = true,
    .same_fpu = true,
    .own_memory_only = true,
    .defers_signals = true,
    .spins = on_spins,
    .syscall = on_syscall,
    .tick_budget = on_tick_budget,
    .insn = on_insn,
    .x87_pointers = on_x87_pointers,
    .legacy = record_legacy,
    .fault = on_fault,
    .before_signal = traced_signal,
    .signal = on_signal,
    .trace_stop = trace_record_stop,
    .trace_turn = trace_record_turn,
    .trace_wrote = trace_record_wrote,
    .trace_go = trace_record_go,
    .ask = record_ask,
    .thread_killed = record_thread_killed,
    .death = record_death,
    .map_kernels = packet_ring_map,
    .keep_file = record_keep_file,
    .acquire = shared_acquire,
    .copy = borrowed_copy,
    .access = values_record,
    .tracks = shared_tracks,
    .before_clone = record_before_clone,
    .after_clone = record_after_clone,
    .thread_begin = record_thread_begin,
    .before_exec = record_before_exec,
    .exec_failed = record_exec_failed,
};
