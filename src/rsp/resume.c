/* Letting the target run, and saying why it stopped. */
#include <stdio.h>
#include <string.h>

#include "rsp/packets.h"

/* ---- threads ---- */

void put_thread_id(struct gdb *g, struct out *o, int tid) {
    if (g->multiprocess) out_format(o, "p%x.", (unsigned)g->target->ops->pid(g->target));
    out_format(o, "%x", (unsigned)tid);
}

static bool parse_one_id(struct in *in, int *id) {
    uint64_t v;
    if (in_word(in, "-1")) {
        *id = -1;
        return true;
    }
    if (!in_hex(in, &v) || v > 0x7fffffff) return false;
    *id = (int)v;
    return true;
}

bool parse_thread_id(struct gdb *g, struct in *in, int *tid) {
    int pid;
    if (!in_char(in, 'p')) return parse_one_id(in, tid);
    if (!parse_one_id(in, &pid)) return false;
    *tid = -1;
    if (in_char(in, '.') && !parse_one_id(in, tid)) return false;
    return pid <= 0 || pid == g->target->ops->pid(g->target);
}

int thread_or_current(struct gdb *g, int tid) { return tid > 0 ? tid : g->target->ops->current_thread(g->target); }

/* ---- conditions of breakpoints ---- */

struct world {
    struct gdb *gdb;
    struct registers registers;
};

static bool world_read(void *arg, uint64_t addr, void *to, size_t n) {
    struct target *t = ((struct world *)arg)->gdb->target;
    return t->ops->read_memory(t, addr, to, n) == n;
}

static bool world_reg(void *arg, unsigned n, uint64_t *value) {
    struct world *w = arg;
    uint8_t bytes[REG_MAX];
    if (reg_size(&w->gdb->description, n) > 8 || !reg_get(&w->gdb->description, &w->registers, n, bytes)) return false;
    memcpy(value, bytes, sizeof *value);
    return true;
}

static bool is_wanted(struct gdb *g, int tid) {
    struct world w = {.gdb = g};
    if (!g->breaks.n_conditional) return true;
    if (!g->target->ops->read_registers(g->target, tid, &w.registers)) return true;
    return breaks_hold(&g->breaks, w.registers.rip, &(struct agent_world){&w, world_read, world_reg});
}

/* ---- running ---- */

struct order {
    bool backward, step;
    bool alone;               /* gdb means nobody else to move */
    int thread;               /* that steps; 0: the current one */
    struct code_range within; /* step on inside */
};

static bool read_general(struct gdb *g, int tid, struct registers *r) {
    const struct target_ops *ops = g->target->ops;
    return (ops->read_general ? ops->read_general : ops->read_registers)(g->target, tid, r);
}

static uint64_t pc_of(struct gdb *g, int tid) {
    static struct registers r;
    return read_general(g, tid, &r) ? r.rip : 0;
}

static struct stop interrupted_stop(struct gdb *g) {
    return (struct stop){.reason = STOP_INTERRUPTED, .thread = g->target->ops->current_thread(g->target)};
}

/* Runs until something that gdb wants to know. A breakpoint whose condition is false is none. */
static struct stop run(struct gdb *g, bool backward) {
    struct target *t = g->target;
    while (!g->interrupted) {
        struct stop s = t->ops->run(t, backward, false);
        if (s.reason != STOP_BREAKPOINT || is_wanted(g, s.thread)) return s;
    }
    return interrupted_stop(g);
}

/* One instruction of thread `tid`, unless something happens to the others. */
static struct stop step_once(struct gdb *g, bool backward, int tid, struct code_range within) {
    struct target *t = g->target;
    while (!g->interrupted) {
        struct stop s = t->ops->step_of(t, backward, tid, within);
        if (s.reason != STOP_BREAKPOINT || is_wanted(g, s.thread)) return s;
        if (s.thread == tid) {
            s.reason = STOP_STEP;
            return s;
        }
    }
    return interrupted_stop(g);
}

static struct stop step_thread(struct gdb *g, const struct order *o) {
    int tid = thread_or_current(g, o->thread);
    for (;;) {
        struct stop s = step_once(g, o->backward, tid, o->within);
        if (s.reason != STOP_STEP || o->within.start == o->within.end) return s;
        uint64_t pc = pc_of(g, tid);
        if (pc < o->within.start || pc >= o->within.end || breaks_at(&g->breaks, pc) >= 0) return s;
    }
}

/* ---- steps over breakpoints ----
 *
 * gdb takes a breakpoint away, has the thread that is at it step, and nobody else, and puts it back. It asserts that no other thread
 * stops meanwhile. Here others do what they did until that thread has its turn: for them the breakpoint is still there. And who
 * replays need not be told that it goes and comes. */

static bool is_of_thread(enum stop_reason why) {
    return why == STOP_BREAKPOINT || why == STOP_WATCHPOINT || why == STOP_SIGNAL || why == STOP_CALL ||
           why == STOP_RETURN || why == STOP_FORK;
}

static bool has_thread(struct gdb *g, int tid) {
    static struct registers r;
    return g->target->ops->read_registers(g->target, tid, &r);
}

#define SYSCALL_LEN 2

/* The breakpoint was at the call that ended the thread. gdb is told that it is behind the call, goes on, and asks for threads then. */
static void see_end(struct gdb *g, int tid, struct stop *s) {
    s->thread = g->gone.thread = tid;
    g->gone.registers.rip += SYSCALL_LEN;
}

/* Lets thread `tid` finish its step, whatever the others do. False: it never does. */
static bool finish_step(struct gdb *g, bool backward, int tid, struct stop *s) {
    struct target *t = g->target;
    do *s = t->ops->step_of(t, backward, tid, (struct code_range){0});
    while (!g->interrupted && s->thread != tid && is_of_thread(s->reason));
    return s->thread == tid && (s->reason == STOP_STEP || is_of_thread(s->reason));
}

/* While thread `tid` stepped over the breakpoint at `pc`, another one came to something to stop for: `s`. */
static struct stop postpone(struct gdb *g, bool backward, int tid, uint64_t pc, struct stop s) {
    struct target *t = g->target;
    struct stop done = {.reason = STOP_STEP, .thread = tid};
    if (!is_of_thread(s.reason)) {
        if (s.reason == STOP_EXEC) return s;
        if (has_thread(g, tid))
            s.thread = tid;
        else if (s.reason == STOP_STEP)
            see_end(g, tid, &s);
        return s;
    }
    g->owed.any = true;
    g->owed.backward = backward;
    g->owed.stop = s;
    g->owed.is_here = !backward && pc_of(g, tid) != pc; /* it waits in a call, behind that */
    if (g->owed.is_here) return done;
    g->owed.at = t->ops->where(t);
    if (finish_step(g, backward, tid, &done)) return done;
    t->ops->seek(t, g->owed.at);
    g->owed.any = false;
    s.thread = tid;
    return s;
}

/* What gdb was not told of comes first. False: it is of no interest any more, or to be found again from here. */
static bool pay(struct gdb *g, bool backward, struct stop *s) {
    struct target *t = g->target;
    uint64_t inside;
    bool is_due = g->owed.any && g->owed.backward == backward;
    g->owed.any = false;
    if (!is_due) return false;
    *s = g->owed.stop;
    if (!g->owed.is_here && t->ops->seek(t, g->owed.at).reason == STOP_FAILED) return false;
    if (s->reason == STOP_BREAKPOINT) return breaks_at(&g->breaks, pc_of(g, s->thread)) >= 0 && is_wanted(g, s->thread);
    return s->reason != STOP_WATCHPOINT || breaks_watched(&g->breaks, s->addr, &inside);
}

static struct stop step_over(struct gdb *g, const struct order *o, int tid) {
    struct target *t = g->target;
    uint64_t pc = g->unset_last;
    read_general(g, tid, &g->gone.registers);
    bool stays = t->ops->set_break(t, BREAK_EXEC, pc, 1);
    struct stop s = step_once(g, o->backward, tid, (struct code_range){0});
    if (s.thread != tid) s = postpone(g, o->backward, tid, pc, s);
    if (stays) t->ops->clear_break(t, BREAK_EXEC, pc, 1);
    return s;
}

static struct stop move(struct gdb *g, const struct order *o) {
    struct stop s;
    int tid = o->step ? thread_or_current(g, o->thread) : 0;
    bool is_over = o->step && o->alone && o->within.start == o->within.end && g->unset_last &&
                   breaks_at(&g->breaks, g->unset_last) < 0 && pc_of(g, tid) == g->unset_last;
    if (pay(g, o->backward, &s)) {
        if (is_over) s.thread = tid;
        return s;
    }
    if (is_over) return step_over(g, o, tid);
    return o->step ? step_thread(g, o) : run(g, o->backward);
}

/* A step forwards from a breakpoint must end in the same thread, for gdb: then it is not told which one it is. */
static void libraries_reply(struct gdb *g, int tid) {
    out_str(&g->reply, "T05");
    if (tid > 0) {
        g->general_thread = tid;
        out_str(&g->reply, "thread:");
        put_thread_id(g, &g->reply, tid);
        out_str(&g->reply, ";");
    }
    out_str(&g->reply, "library:;");
}

void resume_without(struct gdb *g, uint64_t addr) {
    g->unset_last = addr;
    if (g->attached && addr == pc_of(g, g->target->ops->current_thread(g->target))) g->unset_at = addr;
}

static bool is_end(const struct stop *s) {
    return s->reason == STOP_EXITED || s->reason == STOP_KILLED || s->reason == STOP_END;
}

/* "[The process exits here...]", without brackets, or "". */
static void end_text(const struct stop *s, char *text, size_t cap) {
    text[0] = '\0';
    if (s->reason == STOP_EXITED) snprintf(text, cap, "The process exits here with status %d", s->status);
    if (s->reason == STOP_KILLED) snprintf(text, cap, "The process is killed here by signal %d", s->signo);
}

#define OVER_BREAK_MAX 20 /* or the breakpoint was deleted, and gdb steps on and on */

/* gdb steps over a breakpoint, which it takes away for that time, before it goes on. If history ends in such a step, it never again
 * lets the program run: so this step, and one that has led to the end, has only done what it was to do, and whatever comes
 * next is told that this is the end. */
static struct stop step_to_end(struct gdb *g, const struct order *o, bool was_end, struct stop s) {
    unsigned told = g->end_told;
    g->end_told = 0;
    if (!is_end(&s) || o->backward || g->exits_end) return s;
    bool is_over_break = pc_of(g, s.thread) == g->unset_at && told < OVER_BREAK_MAX;
    if (o->step && (!was_end || is_over_break)) {
        g->end_told = told + 1;
        end_text(&s, s.text, sizeof s.text);
        s.reason = STOP_STEP;
    } else if (told) {
        s.reason = STOP_END;
    }
    return s;
}

/* Back to the call that wrote the return address at `slot`, unless there is something to stop for on the way. */
static struct stop back_to_call(struct gdb *g, uint64_t slot) {
    struct target *t = g->target;
    uint64_t inside;
    if (!t->ops->set_break(t, BREAK_STORE, slot, sizeof slot)) return interrupted_stop(g);
    struct stop s = run(g, true);
    t->ops->clear_break(t, BREAK_STORE, slot, sizeof slot);
    bool is_there = s.reason == STOP_WATCHPOINT && s.addr - slot < sizeof slot;
    if (is_there && !breaks_watched(&g->breaks, s.addr, &inside)) s.reason = STOP_STEP;
    return s;
}

static bool is_place(const struct gdb *g, const struct stop *s) {
    return g->goal != GOAL_NONE && (g->goal != GOAL_CALL || s->reason == STOP_STEP);
}

/* gdb has breakpoints of its own, from which it goes on without a word. */
static bool is_still_goal(const struct gdb *g, const struct stop *s) {
    return g->goal == GOAL_CALL && s->reason == STOP_BREAKPOINT;
}

static void resume(struct gdb *g, const struct order *o) {
    struct stop s;
    if (g->settles) {
        g->settles = false;
        stop_reply(g, g->last, REPORT_PLACE);
        return;
    }
    if (g->tells_exec) {
        g->tells_exec = false;
        g->last = (struct stop){.reason = STOP_EXEC, .thread = g->target->ops->current_thread(g->target)};
        breaks_clear(&g->breaks, g->target);
        stop_reply(g, g->last, REPORT_STOP);
        return;
    }
    /* gdb goes along a line in many steps, or from hit to hit whose conditions it finds false, and Ctrl-C comes behind one of them.
     * Front ends also interrupt what has stopped already (-exec-interrupt), and mean nothing by it. */
    bool is_late = g->wire && wire_take_late_interrupt(g->wire) && (o->step || g->stepped || !g->is_shown);
    g->stepped = o->step;
    g->is_shown = false;
    if (is_late && g->goal == GOAL_NONE) {
        g->last = interrupted_stop(g);
        stop_reply(g, g->last, REPORT_STOP);
        return;
    }
    g->interrupted = 0;
    if (g->watch) g->watch(g, true);
    if (g->goal == GOAL_CALL && (o->step || !o->backward)) g->goal = GOAL_NONE;
    if (g->goal != GOAL_NONE) g->owed.any = false;
    if (g->goal == GOAL_CALL)
        s = back_to_call(g, g->goal_slot);
    else if (g->goal != GOAL_NONE)
        s = goal_reach(g->target, g->goal, g->goal_at);
    else
        s = move(g, o);
    if (g->watch) g->watch(g, false);
    gdb_say_printed(g);
    if (g->interrupted && o->step && s.reason == STOP_STEP && g->goal == GOAL_NONE) s.reason = STOP_INTERRUPTED;
    if (g->interrupted && g->wire && is_of_thread(s.reason)) wire_interrupt_was_late(g->wire);
    enum report report = is_place(g, &s) ? REPORT_PLACE : REPORT_STOP;
    bool was_end = is_end(&g->last);
    if (!is_still_goal(g, &s)) g->goal = GOAL_NONE;
    g->last = s;
    if (s.is_other_program) breaks_clear(&g->breaks, g->target); /* gdb does the same */
    if (report == REPORT_PLACE && g->swbreak) {                  /* gdb; others stop for this, too */
        g->settles = true;
        if (s.is_other_program)
            stop_reply(g, (struct stop){.reason = STOP_EXEC, .thread = s.thread}, REPORT_STOP);
        else
            libraries_reply(g, o->backward ? s.thread : 0);
    } else {
        stop_reply(g, step_to_end(g, o, was_end, s), report);
    }
}

void resume_simple(struct gdb *g, bool backward, bool step) {
    /* Backward steps come without a thread unless gdb locks the scheduler: it means the one it stopped for. */
    int thread = g->continue_thread > 0 ? g->continue_thread : backward ? g->last.thread : 0;
    bool alone = g->continue_thread > 0;
    resume(g, &(struct order){.backward = backward, .step = step, .alone = alone, .thread = thread});
}

/* ;ACTION[:THREAD]... : a thread does the first action that names it or all. One runs at a time in any case, so what counts is
 * whether somebody steps. The signals that gdb would deliver are the recording's matter. */
void resume_vcont(struct gdb *g, struct in *in) {
    struct order o = {0};
    bool any = false, others = false;
    while (in_char(in, ';')) {
        struct in action = in_until(in, ';');
        uint64_t signo, from = 0, to = 0;
        int tid = -1;
        bool step = in_char(&action, 's'), ranged = !step && in_char(&action, 'r');
        if (!step && !ranged && in_char(&action, 'S')) {
            step = true;
            if (!in_hex(&action, &signo)) goto bad;
        } else if (ranged && !(in_hex(&action, &from) && in_char(&action, ',') && in_hex(&action, &to))) {
            goto bad;
        } else if (!step && !ranged && !in_char(&action, 'c') && !(in_char(&action, 'C') && in_hex(&action, &signo))) {
            goto bad;
        }
        if (in_char(&action, ':') && !parse_thread_id(g, &action, &tid)) goto bad;
        if (!in_is_empty(&action)) goto bad;
        others |= !step && !ranged;
        any = true;
        if ((step || ranged) && !o.step) {
            o = (struct order){.step = true, .alone = true, .thread = tid > 0 ? tid : 0};
            if (ranged && from < to) o.within = (struct code_range){from, to};
        }
    }
    if (any && in_is_empty(in)) {
        o.alone &= !others;
        resume(g, &o);
        return;
    }
bad:
    out_str(&g->reply, "E01");
}

/* ---- stop replies ---- */

static void put_reg(struct gdb *g, const struct registers *r, unsigned n) {
    uint8_t value[REG_MAX];
    if (!reg_get(&g->description, r, n, value)) return;
    out_format(&g->reply, "%02x:", n);
    out_hex(&g->reply, value, reg_size(&g->description, n));
    out_str(&g->reply, ";");
}

static void put_watch(struct gdb *g, uint64_t addr) {
    static const char *const names[] = {"watch", "rwatch", "awatch"};
    uint64_t inside;
    unsigned type = breaks_watched(&g->breaks, addr, &inside);
    if (type) out_format(&g->reply, "%s:%lx;", names[type - 2], inside);
}

static void put_exec(struct gdb *g) {
    char path[4096];
    if (!g->exec_events || !g->target->ops->exe_path(g->target, path, sizeof path)) return;
    out_str(&g->reply, "exec:");
    out_hex(&g->reply, path, strnlen(path, sizeof path));
    out_str(&g->reply, ";");
}

/* However it was made: what gdb would do behind a vfork() is of no use where nothing runs. */
static void put_fork(struct gdb *g, int child) {
    g->child = child;
    if (g->fork_events && g->multiprocess) out_format(&g->reply, "fork:p%x.%x;", (unsigned)child, (unsigned)child);
}

static void put_break(struct gdb *g, int tid) {
    int type = breaks_at(&g->breaks, pc_of(g, tid));
    if (type == 0 && g->swbreak) out_str(&g->reply, "swbreak:;");
    if (type == 1 && g->hwbreak) out_str(&g->reply, "hwbreak:;");
}

/* What cannot be said in a stop reply. */
static void say_how(struct gdb *g, const struct stop *s) {
    char text[sizeof s->text + 128], what[sizeof s->text];
    text[0] = '\0';
    end_text(s, what, sizeof what);
    if (s->reason == STOP_STEP) snprintf(what, sizeof what, "%.*s", (int)sizeof s->text - 1, s->text);
    if (s->reason == STOP_FAILED)
        snprintf(text, sizeof text, "reprise: the replay failed: %.*s\n", (int)sizeof s->text - 1, s->text);
    else if (what[0])
        snprintf(text, sizeof text, "[%s]\n", what);
    if (text[0]) gdb_say(g, text);
}

/* A place that was sought is no event: how the program would end there does not matter to gdb. */
static struct stop as_place(const struct gdb *g, struct stop s) {
    if (s.reason == STOP_KILLED) s.reason = STOP_SIGNAL;
    /* gdb, not interested in it, would go on with its step */
    if (s.reason == STOP_SIGNAL && !(g->wanted >> (s.signo - 1) & 1)) s.reason = STOP_STEP;
    if (s.reason == STOP_BEGIN || s.reason == STOP_END || s.reason == STOP_EXITED || s.reason == STOP_BREAKPOINT ||
        s.reason == STOP_CALL || s.reason == STOP_RETURN || s.reason == STOP_FORK || s.reason == STOP_FAILED)
        s.reason = STOP_STEP;
    return s;
}

void stop_reply(struct gdb *g, struct stop s, enum report report) {
    static struct registers r;
    struct out *o = &g->reply;
    int signo = report == REPORT_PLACE ? GDB_SIGNAL_NONE : GDB_SIGNAL_TRAP;
    if (report != REPORT_AGAIN) say_how(g, &s);
    if (report != REPORT_STOP) s = as_place(g, s);
    if (g->exits_end && (s.reason == STOP_EXITED || s.reason == STOP_KILLED)) {
        out_format(o, "%c%02x", s.reason == STOP_EXITED ? 'W' : 'X',
                   s.reason == STOP_EXITED ? (unsigned)s.status & 255 : (unsigned)gdb_signal(s.signo));
        if (g->multiprocess) out_format(o, ";process:%x", (unsigned)g->target->ops->pid(g->target));
        g->attached = false;
        return;
    }
    if (s.thread <= 0) s.thread = g->target->ops->current_thread(g->target);
    bool is_another = g->stop_thread && s.thread != g->stop_thread; /* what gdb may remember of it is old */
    g->general_thread = g->stop_thread = s.thread;                  /* gdb takes that for granted */
    if (s.reason == STOP_SIGNAL) signo = gdb_signal(s.signo);
    if (s.reason == STOP_INTERRUPTED) signo = GDB_SIGNAL_INT;
    out_format(o, "T%02x", (unsigned)signo);
    if (s.thread == g->gone.thread) {
        for (unsigned n = 0; n <= GDB_RIP; n++) put_reg(g, &g->gone.registers, n);
        g->gone.thread = 0;
    } else if (is_another ? g->target->ops->read_registers(g->target, s.thread, &r) : read_general(g, s.thread, &r)) {
        for (unsigned n = 0; n < g->description.n; n++)
            if (is_another || n <= GDB_RIP) put_reg(g, &r, n);
    }
    out_str(o, "thread:");
    put_thread_id(g, o, s.thread);
    out_str(o, ";");
    switch (s.reason) {
    case STOP_BREAKPOINT: put_break(g, s.thread); break;
    case STOP_WATCHPOINT: put_watch(g, s.addr); break;
    case STOP_EXEC: put_exec(g); break;
    case STOP_CALL: out_format(o, "syscall_entry:%x;", (unsigned)s.call); break;
    case STOP_RETURN: out_format(o, "syscall_return:%x;", (unsigned)s.call); break;
    case STOP_FORK: put_fork(g, s.child); break;
    case STOP_BEGIN: out_str(o, "replaylog:begin;"); break;
    case STOP_END:
    case STOP_FAILED: /* or gdb would go on and on with the steps of a line */
    case STOP_EXITED:
    case STOP_KILLED: out_str(o, "replaylog:end;"); break;
    default: break;
    }
}
