/* A timeline is opened when the process gets to its program, or is sent there, and a few are kept. Positions carry the number of
 * their program above the number of the event (rsp/target.h). */
#include "replay/process.h"

#include <stdio.h>
#include <stdlib.h>

#include "replay/programs.h"

#define OPEN_MAX 3 /* timelines: each has processes of its own */

struct process {
    struct target target;
    struct timeline_options options;
    struct program *programs;
    struct target **timelines; /* NULL: not open */
    size_t n, current, n_open;
    uint64_t signals;
    struct catches catches;
    bool
        has_come_back; /* to the call that ends the present program, from the next one: it may have to be stopped for */
};

static struct process *process_of(struct target *t) { return (struct process *)t; }
static struct target *now(struct target *t) { return process_of(t)->timelines[process_of(t)->current]; }

/* ---- positions ---- */

static uint64_t program_of(struct position p) { return p.event >> POSITION_PROGRAM; }

static struct position inside(struct position p) {
    p.event &= (1ull << POSITION_PROGRAM) - 1;
    return p;
}

static struct position where(struct target *t) {
    struct position p = now(t)->ops->where(now(t));
    p.event |= (uint64_t)process_of(t)->current << POSITION_PROGRAM;
    return p;
}

/* ---- from program to program ---- */

static struct stop failure(const char *why) {
    struct stop s = {.reason = STOP_FAILED};
    snprintf(s.text, sizeof s.text, "%s", why);
    return s;
}

static void close_one(struct process *p, size_t i) {
    if (!p->timelines[i]) return;
    p->timelines[i]->ops->close(p->timelines[i]);
    p->timelines[i] = NULL;
    p->n_open--;
}

/* The one that is farthest away is the least missed. */
static void make_room(struct process *p, size_t wanted) {
    while (p->n_open >= OPEN_MAX) {
        size_t far = p->n;
        for (size_t i = 0; i < p->n; i++) {
            size_t away = i > wanted ? i - wanted : wanted - i;
            if (p->timelines[i] && i != p->current &&
                (far == p->n || away > (far > wanted ? far - wanted : wanted - far)))
                far = i;
        }
        if (far == p->n) return;
        close_one(p, far);
    }
}

static bool open_program(struct process *p, size_t i, char *why, size_t cap) {
    if (p->timelines[i]) return true;
    make_room(p, i);
    struct timeline_options o = p->options;
    o.program = (int)i + 1;
    struct target *t = timeline_open(&o, why, cap);
    if (!t) return false;
    p->timelines[i] = t;
    p->n_open++;
    return true;
}

/* Makes program i the present one; its breakpoints are those that the debugger sets from now on. */
static bool enter(struct process *p, size_t i, struct stop *s) {
    char why[sizeof s->text] = "";
    if (!open_program(p, i, why, sizeof why)) {
        *s = failure(why);
        return false;
    }
    if (i != p->current) timeline_clear_breaks(p->timelines[p->current]);
    p->timelines[i]->ops->want_signals(p->timelines[i], p->signals);
    p->timelines[i]->ops->want_catches(p->timelines[i], &p->catches);
    __atomic_store_n(&p->current, i, __ATOMIC_RELEASE); /* interrupt() reads it */
    return true;
}

static struct stop as_exec(struct stop s) {
    if (s.reason != STOP_FAILED && s.reason != STOP_INTERRUPTED) s.reason = STOP_EXEC;
    s.is_other_program = true;
    return s;
}

static struct stop enter_next(struct process *p) {
    struct stop s;
    if (!enter(p, p->current + 1, &s)) return s;
    struct target *t = p->timelines[p->current];
    return as_exec(t->ops->seek_begin(t));
}

/* In front of the call that executed the program. */
static struct stop enter_previous(struct process *p) {
    struct stop s;
    if (!enter(p, p->current - 1, &s)) return s;
    struct target *t = p->timelines[p->current];
    s = t->ops->seek_end(t);
    if (s.reason == STOP_EXEC) s = t->ops->run(t, true, true);
    p->has_come_back = true;
    return as_exec(s);
}

static struct stop go_on(struct process *p, struct stop s) {
    if (s.reason == STOP_EXEC && p->current + 1 < p->n) return enter_next(p);
    if (s.reason == STOP_EXEC) s.reason = STOP_END; /* the recording does not have it */
    if (s.reason == STOP_BEGIN && p->current > 0) return enter_previous(p);
    return s;
}

/* Forgets that it has; true: what is looked for backwards may be here. */
static bool is_just_back(struct process *p, bool backward) {
    bool is = p->has_come_back && backward;
    p->has_come_back = false;
    return is;
}

static struct stop run(struct target *t, bool backward, bool step) {
    if (is_just_back(process_of(t), backward) && !step) now(t)->ops->seek_end(now(t));
    return go_on(process_of(t), now(t)->ops->run(now(t), backward, step));
}

static struct stop step_of(struct target *t, bool backward, int tid, struct code_range within) {
    process_of(t)->has_come_back = false;
    return go_on(process_of(t), now(t)->ops->step_of(now(t), backward, tid, within));
}

static struct stop seek_in(struct target *t, size_t program, struct stop (*go)(struct target *, struct position),
                           struct position to) {
    struct process *p = process_of(t);
    struct stop s;
    bool other = program != p->current;
    p->has_come_back = false;
    if (!enter(p, program, &s)) return s;
    s = go(now(t), to);
    s.is_other_program = other;
    if (s.reason == STOP_EXEC) s.reason = STOP_STEP;
    return s;
}

static struct stop go_to(struct target *t, struct position to) { return t->ops->seek(t, to); }
static struct stop go_to_begin(struct target *t, struct position to) { return t->ops->seek_begin(t); }
static struct stop go_to_end(struct target *t, struct position to) { return t->ops->seek_end(t); }

static struct stop seek(struct target *t, struct position to) {
    if (program_of(to) >= process_of(t)->n) return failure("the process has not run so many programs");
    return seek_in(t, program_of(to), go_to, inside(to));
}

static struct stop seek_begin(struct target *t) { return seek_in(t, 0, go_to_begin, (struct position){0}); }
static struct stop seek_end(struct target *t) {
    return seek_in(t, process_of(t)->n - 1, go_to_end, (struct position){0});
}

static void want_signals(struct target *t, uint64_t set) {
    process_of(t)->signals = set;
    now(t)->ops->want_signals(now(t), set);
}

static void want_catches(struct target *t, const struct catches *c) {
    process_of(t)->catches = *c;
    now(t)->ops->want_catches(now(t), c);
}

static void interrupt(struct target *t) {
    struct process *p = process_of(t);
    struct target *one = p->timelines[__atomic_load_n(&p->current, __ATOMIC_ACQUIRE)];
    one->ops->interrupt(one);
}

/* ---- what the present program's timeline answers ---- */

static int current_thread(struct target *t) { return now(t)->ops->current_thread(now(t)); }
static bool read_registers(struct target *t, int tid, struct registers *out) {
    return now(t)->ops->read_registers(now(t), tid, out);
}
static bool read_general(struct target *t, int tid, struct registers *out) {
    return now(t)->ops->read_general(now(t), tid, out);
}
static bool write_registers(struct target *t, int tid, const struct registers *in) {
    return now(t)->ops->write_registers(now(t), tid, in);
}
static size_t read_memory(struct target *t, uint64_t addr, void *to, size_t n) {
    return now(t)->ops->read_memory(now(t), addr, to, n);
}
static bool has_left(struct target *t) { return now(t)->ops->has_left(now(t)); }

static bool write_memory(struct target *t, uint64_t addr, const void *from, size_t n) {
    return now(t)->ops->write_memory(now(t), addr, from, n);
}
static size_t threads(struct target *t, struct thread_facts *out, size_t cap) {
    return now(t)->ops->threads(now(t), out, cap);
}
static size_t regions(struct target *t, struct memory_region *out, size_t cap) {
    return now(t)->ops->regions(now(t), out, cap);
}
static size_t auxv(struct target *t, void *to, size_t cap) { return now(t)->ops->auxv(now(t), to, cap); }
static size_t arguments(struct target *t, void *to, size_t cap) { return now(t)->ops->arguments(now(t), to, cap); }
static size_t siginfo(struct target *t, void *to, size_t cap) { return now(t)->ops->siginfo(now(t), to, cap); }
static int pid(struct target *t) { return now(t)->ops->pid(now(t)); }
static bool exe_path(struct target *t, char *out, size_t cap) { return now(t)->ops->exe_path(now(t), out, cap); }
static int open_file(struct target *t, const char *path) { return now(t)->ops->open_file(now(t), path); }
static bool set_break(struct target *t, enum break_kind kind, uint64_t addr, size_t len) {
    return now(t)->ops->set_break(now(t), kind, addr, len);
}
static bool clear_break(struct target *t, enum break_kind kind, uint64_t addr, size_t len) {
    return now(t)->ops->clear_break(now(t), kind, addr, len);
}
static void set_conditions(struct target *t, uint64_t addr, const struct condition *list, size_t n) {
    now(t)->ops->set_conditions(now(t), addr, list, n);
}
static bool command(struct target *t, const char *text, char *out, size_t cap) {
    return now(t)->ops->command(now(t), text, out, cap);
}

static void close_all(struct process *p) {
    for (size_t i = 0; i < p->n; i++) close_one(p, i);
    free(p->timelines);
    free(p->programs);
}

static void close_process(struct target *t) {
    close_all(process_of(t));
    free(t);
}

/* Finds its programs, and opens the first one. */
static bool open_first(struct process *p, char *why, size_t cap) {
    p->n = programs_find(p->options.recording, &p->options.pid, &p->programs, why, cap);
    p->timelines = calloc(p->n + 1, sizeof *p->timelines);
    return p->n && p->timelines && open_program(p, 0, why, cap);
}

static bool enter_process(struct target *t, int pid) {
    struct process *p = process_of(t), other = {.target = p->target, .options = p->options};
    char why[256];
    other.options.pid = pid;
    other.signals = p->signals;
    other.catches = p->catches;
    if (!open_first(&other, why, sizeof why)) {
        close_all(&other);
        return false;
    }
    close_all(p);
    *p = other;
    now(t)->ops->want_signals(now(t), p->signals);
    now(t)->ops->want_catches(now(t), &p->catches);
    return true;
}

static const struct target_ops process_ops = {
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
    .read_registers = read_registers,
    .read_general = read_general,
    .write_registers = write_registers,
    .read_memory = read_memory,
    .write_memory = write_memory,
    .has_left = has_left,
    .threads = threads,
    .regions = regions,
    .auxv = auxv,
    .arguments = arguments,
    .siginfo = siginfo,
    .pid = pid,
    .enter_process = enter_process,
    .exe_path = exe_path,
    .open_file = open_file,
    .set_break = set_break,
    .clear_break = clear_break,
    .set_conditions = set_conditions,
    .command = command,
    .close = close_process,
};

struct target *process_open(const struct timeline_options *o, char *why, size_t cap) {
    struct process *p = calloc(1, sizeof *p);
    if (!p) {
        snprintf(why, cap, "out of memory");
        return NULL;
    }
    p->target.ops = &process_ops;
    p->options = *o;
    p->signals = UINT64_MAX;
    if (open_first(p, why, cap)) return &p->target;
    close_process(&p->target);
    return NULL;
}
