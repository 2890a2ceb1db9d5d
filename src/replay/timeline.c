#include "replay/timeline.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "replay/elapsed.h"
#include "replay/programs.h"
#include "replay/timeline_parts.h"
#include "why/command.h"

/* ---- helpers ---- */

struct stop timeline_stop_of(const struct worker *w) {
    const struct worker_stop *s = &w->stop;
    struct stop out = {.thread = s->tid,
                       .signo = s->signo,
                       .status = s->status,
                       .addr = s->addr,
                       .call = (int)s->call,
                       .child = s->child};
    snprintf(out.text, sizeof out.text, "%s", s->text);
    switch ((enum worker_reason)s->reason) {
    case WORKER_BREAK: out.reason = STOP_BREAKPOINT; break;
    case WORKER_WATCH: out.reason = STOP_WATCHPOINT; break;
    case WORKER_SIGNAL: out.reason = STOP_SIGNAL; break;
    case WORKER_CALL: out.reason = STOP_CALL; break;
    case WORKER_RETURN: out.reason = STOP_RETURN; break;
    case WORKER_FORK: out.reason = STOP_FORK; break;
    case WORKER_INTERRUPTED: out.reason = STOP_INTERRUPTED; break;
    case WORKER_ENDED: out.reason = STOP_END; break;
    case WORKER_EXEC: out.reason = STOP_EXEC; break;
    case WORKER_FAILED: out.reason = STOP_FAILED; break;
    case WORKER_EXITED:
        out.reason = WIFSIGNALED(s->status) ? STOP_KILLED : STOP_EXITED;
        out.signo = WTERMSIG(s->status);
        out.status = WEXITSTATUS(s->status);
        break;
    default: out.reason = STOP_STEP;
    }
    return out;
}

static struct stop stop_with(const struct worker *w, enum stop_reason reason) {
    return (struct stop){.reason = reason, .thread = w->stop.tid};
}

struct stop timeline_failure(const char *text) {
    struct stop s = {.reason = STOP_FAILED};
    snprintf(s.text, sizeof s.text, "%s", text);
    return s;
}

static bool is_before(const struct worker *w, struct position p) {
    const struct worker_place *at = &w->stop.place;
    if (at->is_exact) return position_compare(position_of(at), p) <= 0;
    return at->event < p.event || (at->event == p.event && at->ticks < p.ticks);
}

static bool is_at(const struct worker *w, struct position p) {
    return w->stop.place.is_exact && position_compare(position_of(&w->stop.place), p) == 0;
}

void timeline_become(struct timeline *t, struct worker *w) {
    if (t->now != w) session_kill(&t->session, t->now);
    t->now = w;
}

static bool was_interrupted(struct timeline *t) {
    return __atomic_load_n(&t->session.control->interrupt, __ATOMIC_ACQUIRE);
}

static void forget_interrupt(struct timeline *t) {
    __atomic_store_n(&t->session.control->interrupt, 0, __ATOMIC_RELEASE);
}

/* ---- going somewhere ---- */

struct worker_run timeline_run_to(struct position p) {
    return (struct worker_run){.aim = AIM_PLACE, .event = p.event, .ticks = p.ticks, .steps = p.steps};
}

/* The same, as a part of something that is only done when all of it is. */
static struct worker_run steady_run_to(struct position p) {
    struct worker_run run = timeline_run_to(p);
    run.steady = 1;
    return run;
}

/* Runs, leaving checkpoints on the way. False: the worker is gone. */
static bool run_leaving_checkpoints(struct timeline *t, struct worker *w, struct worker_run run) {
    for (;;) {
        run.pause_us = t->interval_us;
        if (!session_run(&t->session, w, &run)) return false;
        if (w->stop.reason != WORKER_PAUSED) return true;
        checkpoint_add(t, w);
        run.fresh = 1;
    }
}

/* A worker on its way to p: the present one if it can go there (and `may_move`), or a copy of the nearest checkpoint. */
static struct worker *set_out(struct timeline *t, struct position p, bool may_move) {
    if (!is_at(t->now, p)) scout_collect(t, p);
    size_t i = checkpoint_before(t, p);
    struct worker *c = t->checkpoints[i];
    /* a worker that stands in front of a signal is behind the instruction which that interrupts */
    bool is_past =
        worker_is_over(t->now) || t->now->stop.is_inside || (t->now->stop.reason == WORKER_SIGNAL && is_at(t->now, p));
    bool now_is_nearer = !is_past && is_before(t->now, p) && !is_before(t->now, position_of(&c->stop.place));
    bool is_there = !is_past && is_at(t->now, p);
    struct position nearest = position_of(now_is_nearer ? &t->now->stop.place : &c->stop.place);
    struct worker *restored = is_there ? NULL : checkpoint_restore(t, p, false, nearest);
    if (restored) return restored;
    if (is_there || now_is_nearer) return may_move ? t->now : session_fork(&t->session, t->now);
    return session_fork(&t->session, c);
}

/* The same, already there or at the first place behind p; NULL: it failed. near: leaves checkpoints shortly before p, because
 * somebody is about to go back from there step by step. */
static struct worker *reach(struct timeline *t, struct position p, bool may_move, bool near) {
    struct worker *w = set_out(t, p, may_move);
    if (!w) return NULL;
    if (is_at(w, p)) return w;
    breakpoints_arm(t, w, false);
    bool good = true;
    for (size_t i = 0; good && near && i < NEAR_EVENTS; i++) {
        struct position way = {p.event > near_events[i] ? p.event - near_events[i] : 0, 0, 0};
        if (!way.event || !is_before(w, way)) continue;
        good = run_leaving_checkpoints(t, w, steady_run_to(way));
        if (good && is_before(w, p)) checkpoint_add(t, w);
    }
    for (size_t i = 0; good && near && i < NEAR_TICKS; i++) {
        struct position way = {p.event, p.ticks > near_ticks[i] ? p.ticks - near_ticks[i] : 0, 0};
        if (!is_before(w, way)) continue;
        good = run_leaving_checkpoints(t, w, steady_run_to(way));
        if (good && is_before(w, p)) checkpoint_add(t, w);
    }
    if (good && !is_at(w, p) && is_before(w, p))
        good = run_leaving_checkpoints(t, w, near ? steady_run_to(p) : timeline_run_to(p));
    if (good) return w;
    if (w != t->now) session_kill(&t->session, w);
    return NULL;
}

/* From the last tick on, instruction by instruction, to where a signal is about to be delivered. */
static bool run_to_signal(struct timeline *t, struct worker *w, const struct worker_stop *before) {
    struct worker_run run = {.signals = ~0ull, .single = 1, .steady = 1};
    return session_run(&t->session, w, &run) && w->stop.reason == WORKER_SIGNAL && w->stop.place.is_exact &&
           w->stop.place.event == before->place.event && w->stop.place.ticks == before->place.ticks;
}

#define RSP 4 /* in worker_stop.gpr */

static bool has_registers_of(const struct worker *w, const struct worker_stop *s) {
    if (w->stop.pc != s->pc || w->stop.gpr[RSP] != s->gpr[RSP]) return false;
    return s->is_inside || memcmp(w->stop.gpr, s->gpr, sizeof s->gpr) == 0;
}

/* To where registers are the same as they were; from inside a repeated instruction to the place in front of it. */
static bool run_to_registers(struct timeline *t, struct worker *w, const struct worker_stop *before) {
    struct worker_run run = {.aim = AIM_PLACE, .single = 1, .steady = 1, .match_pc = before->pc};
    run.match = before->is_inside ? MATCH_PLACE : MATCH_REGISTERS;
    run.event = before->place.event;
    run.ticks = before->place.ticks;
    run.steps = UINT64_MAX;
    memcpy(run.match_gpr, before->gpr, sizeof before->gpr);
    bool found = has_registers_of(w, before) || (session_run(&t->session, w, &run) && has_registers_of(w, before));
    if (!found || !w->stop.place.is_exact || w->stop.place.ticks != before->place.ticks) return false;
    const struct worker_stop there = w->stop;
    w->stop = *before; /* why it stopped is still true */
    w->stop.place = there.place;
    w->stop.is_inside = 0;
    memcpy(w->stop.gpr, there.gpr, sizeof there.gpr);
    return true;
}

/* Finds out how many steps it is from the last tick to the present. */
static bool resolve(struct timeline *t) {
    const struct worker_stop before = t->now->stop;
    if (before.place.is_exact && !before.is_inside) return true;
    struct worker *w = reach(t, (struct position){before.place.event, before.place.ticks, 0}, false, true);
    if (!w) return false;
    checkpoint_add(t, w);
    bool is_signal =
        before.reason == WORKER_SIGNAL; /* in front of it, not of the instruction that is interrupted by it */
    if (!(is_signal ? run_to_signal : run_to_registers)(t, w, &before)) {
        session_kill(&t->session, w);
        return false;
    }
    timeline_become(t, w);
    return true;
}

static struct stop go(struct timeline *t, struct position p, bool near) {
    struct worker *w = reach(t, p, true, near);
    if (!w) return timeline_failure(t->now->is_gone ? t->now->stop.text : "the replay broke on its way there");
    timeline_become(t, w);
    return timeline_stop_of(w);
}

static struct stop seek(struct target *target, struct position to) {
    struct timeline *t = timeline_of(target);
    timeline_return(t);
    search_forget(t);
    trail_drop(t);
    if (position_compare(to, t->begin) < 0) to = t->begin;
    struct stop s = go(t, to, false);
    forget_interrupt(t);
    return s;
}

static struct stop seek_begin(struct target *target) { return seek(target, timeline_of(target)->begin); }

#define FATAL_LOOKS 64

/* A process that dies of a signal has its end in front of that, where gdb shows what kills it. */
static void before_fatal_signal(struct timeline *t) {
    const struct worker_stop s = t->now->stop;
    if (s.reason != WORKER_EXITED || !WIFSIGNALED(s.status) || !s.has_op) return;
    struct worker *w = reach(t, (struct position){s.op_event, s.op_ticks, 0}, false, true), *last = NULL;
    struct worker_run run = {.signals = 1ull << (WTERMSIG(s.status) - 1), .steady = 1};
    /* who was in a call may have been there for long: others got such signals meanwhile, and handled them */
    for (int i = 0; w && i < FATAL_LOOKS && session_run(&t->session, w, &run) && w->stop.reason == WORKER_SIGNAL; i++) {
        session_kill(&t->session, last);
        last = session_fork(&t->session, w);
    }
    bool is_last = w && last && w->stop.reason == WORKER_EXITED && last->stop.tid == s.tid;
    session_kill(&t->session, w);
    if (is_last)
        timeline_become(t, last);
    else
        session_kill(&t->session, last);
}

static struct stop seek_end(struct target *target) {
    struct timeline *t = timeline_of(target);
    timeline_return(t);
    search_forget(t);
    trail_drop(t);
    if (!worker_is_over(t->now)) {
        struct position last = {UINT64_MAX, 0, 0};
        struct worker *w = set_out(t, last, true);
        if (!w) return timeline_failure("cannot copy the process");
        breakpoints_arm(t, w, false);
        if (!run_leaving_checkpoints(t, w, (struct worker_run){0})) return timeline_stop_of(w);
        timeline_become(t, w);
    }
    before_fatal_signal(t);
    scout_send(t);
    forget_interrupt(t);
    return timeline_stop_of(t->now);
}

/* ---- backwards ---- */

/* The last place of the present R-thread that is before the present one. From `from` on, instruction by instruction, up to
 * `to`: the place before that. */
static struct stop go_before(struct timeline *t, struct position from, struct position to) {
    struct worker *w = reach(t, from, false, true);
    if (!w) return timeline_failure("the replay broke on its way back");
    checkpoint_add(t, w);
    struct worker *ahead = session_fork(&t->session, w);
    struct worker_run run = steady_run_to(to);
    run.single = 1;
    bool good = ahead && session_run(&t->session, ahead, &run) && ahead->stop.before.is_exact;
    struct position before = good ? position_of(&ahead->stop.before) : from;
    session_kill(&t->session, ahead);
    run = steady_run_to(before);
    if (good && !is_at(w, before)) good = session_run(&t->session, w, &run);
    if (!good) {
        session_kill(&t->session, w);
        return timeline_failure("the replay broke on its way back");
    }
    timeline_become(t, w);
    return stop_with(w, STOP_STEP);
}

struct stop timeline_before_op(struct timeline *t, uint64_t event, uint64_t ticks) {
    return go_before(t, (struct position){event, ticks, 0}, (struct position){event, ticks, UINT64_MAX});
}

static struct stop one_place_back(struct timeline *t) {
    const struct worker_stop s = t->now->stop;
    struct position p = position_of(&s.place);
    if (position_compare(p, t->begin) <= 0) return stop_with(t->now, STOP_BEGIN);
    if (s.is_anothers) return timeline_before_op(t, s.op_event, s.op_ticks); /* a call, before that one ran */
    if (p.steps) {
        struct stop out = go(t, (struct position){p.event, p.ticks, p.steps - 1}, true);
        if (out.reason != STOP_FAILED) out.reason = STOP_STEP;
        return out;
    }
    if (p.ticks > s.base_ticks) return go_before(t, (struct position){p.event, p.ticks - 1, 0}, p);
    if (s.has_op) return timeline_before_op(t, s.op_event, s.op_ticks);
    return stop_with(t->now, STOP_BEGIN);
}

/* The place before may be in front of the same instruction: events came between. Going forwards, one is in front of the events, too,
 * and behind them only for a signal: one that a tracer has let through, while others ran. */
static struct stop reverse_step(struct timeline *t) {
    const struct worker_stop from = t->now->stop;
    for (;;) {
        struct stop out = one_place_back(t);
        const struct worker_stop *now = &t->now->stop;
        uint64_t ticks = from.is_anothers ? from.op_ticks : from.place.ticks;
        bool same = now->pc == from.pc && now->place.ticks == ticks && now->tid == from.tid &&
                    memcmp(now->gpr, from.gpr, sizeof from.gpr) == 0;
        bool is_before =
            now->place.is_exact && position_compare(position_of(&now->place), position_of(&from.place)) < 0;
        if (out.reason == STOP_STEP && now->is_again) continue;
        if (out.reason != STOP_STEP || !same || (from.reason == WORKER_SIGNAL) == is_before) return out;
    }
}

#define WATCHED_MOST 4096 /* bytes: more is not compared at each step */

/* Whether what is watched was changed by what was stepped over. */
static struct stop look_at_watched(struct timeline *t, struct stop stepped, const uint8_t *was, size_t n) {
    uint8_t is[WATCHED_MOST];
    if (stepped.reason != STOP_STEP || !n || breakpoints_watched(t, is, sizeof is) != n) return stepped;
    size_t i = 0;
    while (i < n && was[i] == is[i]) i++;
    if (i == n) return stepped;
    stepped.reason = STOP_WATCHPOINT;
    stepped.addr = breakpoints_watched_at(t, i);
    return stepped;
}

/* Of the R-thread that runs, or of another one. */
static struct stop reverse_step_of(struct timeline *t, const struct worker_thread *other) {
    if (!resolve(t)) return timeline_failure("the present place cannot be found again");
    struct position from = position_of(&t->now->stop.place);
    uint8_t watched[WATCHED_MOST];
    size_t n_watched = breakpoints_watched(t, watched, sizeof watched);
    struct stop s;
    if (!other)
        s = reverse_step(t);
    else
        s = other->has_op ? timeline_before_op(t, other->op_event, other->op_ticks) : stop_with(t->now, STOP_BEGIN);
    return look_at_watched(t, search_stepped_over(t, from, s), watched, n_watched);
}

/* ---- forwards ---- */

/* Before a run: what was changed is forgotten, unless a function is being called, or the program sent elsewhere. */
static void settle(struct timeline *t, bool backward) {
    if (t->diversion && (backward || inspect_is_where_recorded(t))) timeline_return(t);
}

static struct stop forward(struct timeline *t, bool step, uint32_t thread, struct code_range within) {
    struct worker *w = stands(t);
    if (worker_is_over(w) && w != t->diversion) return timeline_stop_of(w);
    struct worker_run run = {.signals = t->signals, .catches = t->catches, .step = step, .thread = thread};
    run.within_start = within.start;
    run.within_end = within.end;
    breakpoints_arm(t, w, true);
    if (t->diversion || step)
        session_run(&t->session, w, &run);
    else
        run_leaving_checkpoints(t, w, run);
    if (w == t->diversion && worker_is_over(w)) { /* what was called has ended its copy of the process */
        timeline_return(t);
        struct stop s = stop_with(t->now, STOP_STEP);
        snprintf(s.text, sizeof s.text,
                 "The copy of the process that was changed has ended: this is the recording again");
        return s;
    }
    return timeline_stop_of(w);
}

static struct stop move(struct target *target, bool backward, bool step, struct code_range within) {
    struct timeline *t = timeline_of(target);
    struct stop s;
    settle(t, backward);
    if (!backward || step) search_forget(t);
    if (backward && (step ? trail_step : trail_search)(t, &s)) {
        search_forget(t);
        forget_interrupt(t);
        return s;
    }
    if (!backward && step && within.start == within.end && trail_step_on(t, &s)) {
        forget_interrupt(t);
        return s;
    }
    if (!trail_settle(t)) return timeline_failure("the present place cannot be found again");
    trail_moved(t, backward, step);
    if (!backward)
        s = forward(t, step, stands(t)->stop.place.thread, within);
    else
        s = step ? reverse_step_of(t, NULL) : search_back(t);
    if (was_interrupted(t)) forget_interrupt(t);
    return s;
}

static struct stop run(struct target *target, bool backward, bool step) {
    return move(target, backward, step, (struct code_range){0});
}

static struct stop step_of(struct target *target, bool backward, int tid, struct code_range within) {
    struct timeline *t = timeline_of(target);
    struct worker_thread who;
    settle(t, backward);
    if (tid == stands(t)->stop.tid) return move(target, backward, true, within);
    search_forget(t);
    if (!trail_settle(t)) return timeline_failure("the present place cannot be found again");
    trail_drop(t);
    if (!inspect_thread(t, tid, &who)) return timeline_failure("there is no such thread here");
    struct stop s = backward ? reverse_step_of(t, &who) : forward(t, true, who.number, within);
    if (was_interrupted(t)) forget_interrupt(t);
    return s;
}

static void want_signals(struct target *target, uint64_t set) {
    struct timeline *t = timeline_of(target);
    if (t->signals != set) search_forget(t);
    t->signals = set;
}

static void want_catches(struct target *target, const struct catches *c) {
    struct timeline *t = timeline_of(target);
    _Static_assert(sizeof c->calls == sizeof t->catches.calls, "the same calls");
    search_forget(t);
    memcpy(t->catches.calls, c->calls, sizeof c->calls);
    t->catches.forks = c->forks;
    t->has_catches = c->forks;
    for (size_t i = 0; i < CALLS_MAX / 64; i++) t->has_catches |= c->calls[i] != 0;
}

/* ---- for excursions ---- */

struct worker *timeline_reach(struct timeline *t, struct position p) {
    return reach(t, p, false, false);
}

struct worker *timeline_reach_near(struct timeline *t, struct position p) {
    return reach(t, p, false, true);
}

struct stop timeline_go_to_begin(struct timeline *t) {
    struct stop s = go(t, t->begin, false);
    if (s.reason == STOP_STEP) s.reason = STOP_BEGIN;
    return s;
}

bool timeline_resolve(struct timeline *t) { return resolve(t); }

struct stop timeline_reverse_continue(struct timeline *t) {
    struct stop s = search_back(t);
    if (was_interrupted(t)) forget_interrupt(t);
    return s;
}

/* ---- diversions ---- */

struct worker *timeline_divert(struct timeline *t) {
    if (t->diversion) return t->diversion;
    if (!trail_settle(t)) return NULL;
    struct worker *w = session_fork(&t->session, t->now);
    if (w) session_ask(&t->session, w, ASK_DIVERT, 0, 0);
    return t->diversion = w;
}

void timeline_return(struct timeline *t) {
    session_kill(&t->session, t->diversion);
    t->diversion = NULL;
}

/* ---- the rest ---- */

static struct position where(struct target *target) {
    struct timeline *t = timeline_of(target);
    if (!trail_is_ahead(t)) resolve(t);
    return trail_position(t);
}

static int current_thread(struct target *target) { return stands(timeline_of(target))->stop.tid; }

static void interrupt(struct target *target) {
    __atomic_store_n(&timeline_of(target)->session.control->interrupt, 1, __ATOMIC_RELEASE);
}

static int pid_of(struct target *target) { return timeline_of(target)->pid; }

static bool command(struct target *target, const char *text, char *out, size_t cap) {
    struct timeline *t = timeline_of(target);
    if (strcmp(text, "when") == 0) {
        struct position p = where(target);
        snprintf(out, cap, "event %lu, tick %lu, step %lu\n", p.event, p.ticks, p.steps);
        return true;
    }
    if (strcmp(text, "hash") == 0) { /* for tests */
        snprintf(out, cap, "%lx\n", timeline_memory_hash(target));
        return true;
    }
    if (strcmp(text, "elapsed") == 0) {
        elapsed_text(t->options.recording, t->stream, where(target), out, cap);
        return true;
    }
    if (strncmp(text, "why ", 4) == 0) {
        why_command(target, t->options.recording, t->stream, t->program, text + 4, out, cap);
        return true;
    }
    if (strcmp(text, "checkpoints") == 0) {
        size_t n = 0;
        for (size_t i = 0; i < t->n_checkpoints && n < cap; i++) {
            const struct worker_place *p = &t->checkpoints[i]->stop.place;
            n += (size_t)snprintf(out + n, cap - n, "event %lu, tick %lu, step %lu\n", p->event, p->ticks, p->steps);
        }
        return true;
    }
    if (strcmp(text, "stored") == 0) {
        size_t n = 0;
        for (size_t i = 0; i < stored_count(&t->stored) && n < cap; i++) {
            struct position p = stored_place(&t->stored, i);
            n += (size_t)snprintf(out + n, cap - n, "%lu %lu %lu\n", p.event, p.ticks, p.steps);
        }
        return true;
    }
    return false;
}

static void close_timeline(struct target *target) {
    struct timeline *t = timeline_of(target);
    session_close(&t->session);
    trail_close(t);
    memory_close(t);
    stored_close(&t->stored);
    free(t->breaks);
    free(t->conditions);
    free(t);
}

static const struct target_ops timeline_ops = {
    .where = where,
    .current_thread = current_thread,
    .run = run,
    .step_of = step_of,
    .want_signals = want_signals,
    .want_catches = want_catches,
    .seek = seek,
    .seek_begin = seek_begin,
    .seek_end = seek_end,
    .interrupt = interrupt,
    .read_registers = inspect_registers,
    .read_general = inspect_general,
    .write_registers = inspect_set_registers,
    .read_memory = inspect_memory,
    .is_elsewhere = inspect_is_elsewhere,
    .write_memory = inspect_set_memory,
    .has_left = inspect_has_left,
    .threads = inspect_threads,
    .regions = inspect_regions,
    .auxv = inspect_auxv,
    .arguments = inspect_arguments,
    .siginfo = inspect_siginfo,
    .pid = pid_of,
    .exe_path = inspect_exe_path,
    .open_file = inspect_open_file,
    .set_break = breakpoints_set,
    .clear_break = breakpoints_clear,
    .set_conditions = breakpoints_set_conditions,
    .command = command,
    .leave = excursion_leave,
    .come_back = excursion_come_back,
    .find_store = excursion_find_store,
    .history = excursion_history,
    .close = close_timeline,
};

uint64_t timeline_program(struct target *target) { return timeline_of(target)->program; }

uint64_t timeline_stream(struct target *target) { return timeline_of(target)->stream; }

uint64_t timeline_memory_hash(struct target *target) {
    struct timeline *t = timeline_of(target);
    trail_is_not_enough(t);
    trail_settle(t);
    return session_ask(&t->session, stands(t), ASK_HASH, 0, 0);
}

size_t timeline_read_shared(struct target *target, uint64_t object, uint64_t page, struct worker_shared *to) {
    struct timeline *t = timeline_of(target);
    struct worker *w = stands(t);
    uint64_t n = session_ask(&t->session, w, ASK_SHARED, object, page);
    if (w->is_gone || n > TIMELINE_SHARED) return SIZE_MAX;
    memcpy(to, session_slot(&t->session, w)->data, n * sizeof *to);
    return n;
}

/* ---- opening ---- */

static bool find_program(struct timeline *t, char *why, size_t cap) {
    struct program *all;
    t->pid = t->options.pid;
    size_t n = programs_find(t->options.recording, &t->pid, &all, why, cap);
    if (!n) return false;
    size_t which = t->options.program > 0 && (size_t)t->options.program < n ? (size_t)t->options.program - 1 : n - 1;
    t->program = which;
    t->stream = all[which].stream;
    memcpy(t->exe, all[which].exe, sizeof t->exe);
    t->auxv_start = all[which].auxv_start;
    t->auxv_end = all[which].auxv_end;
    t->arg_start = all[which].arg_start;
    t->arg_end = all[which].arg_end;
    free(all);
    return true;
}

struct target *timeline_open(const struct timeline_options *o, char *why, size_t cap) {
    struct timeline *t = calloc(1, sizeof *t);
    if (!t) {
        snprintf(why, cap, "out of memory");
        return NULL;
    }
    t->target.ops = &timeline_ops;
    t->signals = ~0ull;
    t->options = *o;
    snprintf(t->store, sizeof t->store, "%s", o->store ? o->store : "");
    if (!find_program(t, why, cap)) {
        free(t);
        return NULL;
    }
    if (!trail_open(t) || !memory_open(t)) {
        snprintf(why, cap, "out of memory");
        trail_close(t);
        free(t);
        return NULL;
    }
    struct session_target target = {t->stream, o->quiet, o->from_start};
    t->now = session_open(&t->session, o->recording, o->options, target, why, cap);
    if (!t->now || worker_is_over(t->now)) {
        if (t->now)
            snprintf(why, cap, "%s", t->now->stop.text[0] ? t->now->stop.text : "the recording has no instruction");
        close_timeline(&t->target);
        return NULL;
    }
    if (!o->from_start) stored_open(&t->stored, o->recording, t->stream);
    t->begin = position_of(&t->now->stop.place);
    checkpoint_add(t, t->now);
    if (!t->n_checkpoints) {
        snprintf(why, cap, "cannot copy the replaying process");
        close_timeline(&t->target);
        return NULL;
    }
    return &t->target;
}
