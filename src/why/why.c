#include "why/why.h"

#include <stdlib.h>
#include <string.h>

#include "why/origins.h"

#define HOPS 64          /* through registers, between two stores */
#define PAST 384         /* instructions looked at together */
#define TICKS_FIRST 32   /* how far back at once, at first... */
#define TICKS_MOST 32768 /* ... and at last */
#define EVENTS_BACK 64   /* how many events a register's value is followed over */
#define NO_VALUE ((struct known){0})

/* What the value is, for telling which of several inputs made most of it. */
struct known {
    uint64_t value;
    bool is;
};

/* ---- steps ---- */

struct why_step *why_add_step(struct why *w, enum why_kind kind, struct place what) {
    if (w->n == w->room) {
        size_t room = w->room ? w->room * 2 : 16;
        void *more = realloc(w->steps, room * sizeof *w->steps);
        if (!more) return NULL;
        w->steps = more;
        w->room = room;
    }
    struct why_step *s = &w->steps[w->n++];
    *s = (struct why_step){.kind = kind, .what = what};
    s->at = w->target->ops->where(w->target);
    s->thread = w->target->ops->current_thread(w->target);
    return s;
}

static void lose(struct why *w, struct place what, const char *text) {
    struct why_step *s = why_add_step(w, WHY_LOST, what);
    if (s) snprintf(s->text, sizeof s->text, "%s", text);
}

size_t why_read_value(struct why *w, const struct place *p, uint8_t *to) {
    if (p->is_register) return 0;
    return w->target->ops->read_memory(w->target, p->addr, to, p->len < WHY_SHOWN ? p->len : WHY_SHOWN);
}

static struct known known_from(const uint8_t *bytes, size_t n, size_t len) {
    struct known k = {.is = n == len && len && len <= 8};
    if (k.is) memcpy(&k.value, bytes, len);
    return k;
}

/* ---- the machine ---- */

static bool machine_here(struct why *w, struct machine *m) {
    static const uint8_t gdb_order[16] = {0, 2, 3, 1, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};
    struct registers *r = malloc(sizeof *r);
    bool good = r && w->target->ops->read_registers(w->target, 0, r);
    if (good) {
        for (int i = 0; i < 16; i++) m->gpr[i] = r->gpr[gdb_order[i]];
        m->pc = r->rip;
        m->rflags = r->eflags;
        m->fs_base = r->fs_base;
        m->gs_base = r->gs_base;
    }
    free(r);
    return good;
}

static size_t code_at(struct why *w, uint64_t pc, uint8_t bytes[15]) {
    return w->target->ops->read_memory(w->target, pc, bytes, 15);
}

void why_set_instruction(struct why *w, struct why_step *s, uint64_t pc) {
    uint8_t bytes[15];
    size_t n = code_at(w, pc, bytes);
    s->pc = pc;
    flow_text(pc, bytes, n, s->insn, sizeof s->insn);
    lines_find(w->lines, pc, &s->source);
}

/* ---- from one place to the next ---- */

static struct known value_of(struct why *w, const struct place *p, const struct machine *m) {
    uint8_t bytes[WHY_SHOWN];
    if (!p->is_register) return known_from(bytes, why_read_value(w, p, bytes), p->len);
    if (p->reg >= 16 || p->len > 8 || p->offset + p->len > 8) return NO_VALUE;
    return known_from((const uint8_t *)&m->gpr[p->reg] + p->offset, p->len, p->len);
}

static void keep_inputs(struct why *w, struct why_step *s, const struct flow *f, const struct machine *m) {
    for (size_t i = 0; i < f->n_inputs; i++) {
        struct known k = value_of(w, &f->input[i], m);
        s->input[s->n_inputs++] = (struct why_input){f->input[i], k.value, k.is};
    }
}

static bool is_stack_register(const struct place *p) { return p->is_register && (p->reg == 4 || p->reg == 5); }

/* Of several inputs, the one that made most of the result: whose value is nearest to it. Memory goes before registers.
 * n_inputs: all were followed. */
static size_t most_plausible(const struct why_step *s, struct known result) {
    size_t best = s->n_inputs;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < s->n_inputs; i++) {
        const struct why_input *in = &s->input[i];
        if (s->followed >> i & 1) continue;
        uint64_t away = UINT64_MAX - (in->place.is_register ? 0 : 1);
        if (result.is && in->has_value)
            away = in->value > result.value ? in->value - result.value : result.value - in->value;
        if (best == s->n_inputs || away < least || (away == least && !in->place.is_register)) {
            least = away;
            best = i;
        }
    }
    return best;
}

static void follow_input(struct why_step *s, size_t i, struct place *next, struct known *value) {
    s->followed |= 1u << i;
    *next = s->input[i].place;
    *value = (struct known){s->input[i].value, s->input[i].has_value};
}

/* What the step's instruction means for the trace. True: it goes on with *next. */
static bool follow(struct why *w, struct why_step *s, const struct flow *f, const struct machine *m,
                   struct known result, struct place *next, struct known *value) {
    switch (f->kind) {
    case FLOW_CONSTANT:
        s->is_constant = true;
        snprintf(s->text, sizeof s->text, "a constant of the program: %#lx", f->value);
        return false;
    case FLOW_RETURN_ADDRESS: snprintf(s->text, sizeof s->text, "the return address of a call"); return false;
    case FLOW_PROCESSOR: snprintf(s->text, sizeof s->text, "an input: what the processor says"); return false;
    case FLOW_CALL: return false;
    case FLOW_COPY:
    case FLOW_COMPUTED: break;
    }
    keep_inputs(w, s, f, m);
    if (!s->n_inputs) {
        snprintf(s->text, sizeof s->text, "state of the processor, whose parts are not followed");
        return false;
    }
    size_t i = f->kind == FLOW_COMPUTED ? most_plausible(s, result) : 0;
    if (f->kind == FLOW_COMPUTED && is_stack_register(&s->input[i].place)) {
        snprintf(s->text, sizeof s->text, "an address on the stack");
        return false;
    }
    follow_input(s, i, next, value);
    return true;
}

/* ---- registers ---- */

/* The last instruction among `past` that writes `want`; -1: none. */
static long find_writer(struct why *w, const struct past *past, size_t n, const struct place *want, struct machine *m,
                        struct flow *f) {
    for (size_t i = n; i-- > 0;) {
        uint8_t bytes[15];
        size_t len = code_at(w, past[i].pc, bytes);
        m->pc = past[i].pc;
        m->rflags = past[i].rflags;
        memcpy(m->gpr, past[i].gpr, sizeof m->gpr);
        if (flow_of(m, bytes, len, want, f)) return (long)i;
    }
    return -1;
}

/* Goes to the last instruction of the thread, before the present place, that has written `want`. */
enum found { FOUND, FOUND_NONE, FOUND_EVENT };
static enum found back_to_writer(struct why *w, const struct place *want, struct machine *m, struct flow *f,
                                 struct position *behind_event) {
    static struct past past[PAST];
    uint64_t written = want->reg < 16 ? 1ull << want->reg : 0;
    for (uint64_t ticks = TICKS_FIRST; ticks <= TICKS_MOST; ticks *= 8) {
        bool at_event;
        size_t n = w->target->ops->history(w->target, ticks, written, past, PAST, behind_event, &at_event);
        long i = find_writer(w, past, n, want, m, f);
        if (i >= 0) return w->target->ops->seek(w->target, past[i].at).reason == STOP_FAILED ? FOUND_NONE : FOUND;
        if (at_event) return FOUND_EVENT;
    }
    return FOUND_NONE;
}

/* In front of what took the last event, which is right before `behind`: that may be what wrote the register. */
static enum found over_event(struct why *w, struct position behind, const struct place *want, struct machine *m,
                             struct flow *f) {
    const struct target_ops *ops = w->target->ops;
    uint8_t bytes[15];
    if (ops->seek(w->target, behind).reason == STOP_FAILED) return FOUND_NONE;
    if (ops->run(w->target, true, true).reason != STOP_STEP || !machine_here(w, m)) return FOUND_NONE;
    return flow_of(m, bytes, code_at(w, m->pc, bytes), want, f) ? FOUND : FOUND_EVENT;
}

/* Back to where the register got its value. True: the trace goes on with *p, which may be a register again. */
static bool trace_register(struct why *w, struct place *p, struct known *value) {
    struct machine m = {0};
    struct flow f;
    machine_here(w, &m); /* segment bases */
    struct position behind;
    enum found found = back_to_writer(w, p, &m, &f, &behind);
    for (int i = 0; found == FOUND_EVENT && i < EVENTS_BACK; i++) {
        found = over_event(w, behind, p, &m, &f);
        if (found == FOUND_EVENT) found = back_to_writer(w, p, &m, &f, &behind);
    }
    if (found != FOUND) {
        lose(w, *p, "the register was not written in the instructions just before");
        return false;
    }
    struct why_step *s = why_add_step(w, WHY_REGISTER, *p);
    if (!s) return false;
    why_set_instruction(w, s, m.pc);
    if (f.kind == FLOW_CALL) {
        s->kind = WHY_INPUT;
        origins_of_result(w, s);
        return false;
    }
    return follow(w, s, &f, &m, *value, p, value);
}

/* ---- memory ---- */

/* A store by an instruction, in front of which we are. */
static bool trace_store(struct why *w, struct place *p, struct known *value, const struct flow *f,
                        const struct machine *m) {
    struct place what = p->len > WHY_SHOWN ? f->written : *p; /* of more than is shown, what has changed */
    struct why_step *s = why_add_step(w, WHY_WRITE, what);
    if (!s) return false;
    struct position at = s->at;
    why_set_instruction(w, s, m->pc);
    s->n_before = why_read_value(w, &what, s->before);
    w->target->ops->run(w->target, false, true);
    s->n_after = why_read_value(w, &what, s->after);
    if (w->target->ops->seek(w->target, at).reason == STOP_FAILED) return false;
    return follow(w, s, f, m, known_from(s->after, s->n_after, what.len), p, value);
}

/* Back to the last store, or to what may be one. An instruction whose stores cannot be told from its operands (xsave) counts only
 * if it changes something. */
static struct stop back_to_store(struct why *w, const struct place *p, struct machine *m, struct flow *f,
                                 bool *is_plain) {
    const struct target_ops *ops = w->target->ops;
    for (;;) {
        struct stop stop = ops->find_store(w->target, p->addr, p->len);
        uint8_t bytes[15], before[WHY_SHOWN], after[WHY_SHOWN];
        *is_plain = false;
        if (stop.reason != STOP_WATCHPOINT || !machine_here(w, m)) return stop;
        size_t n = code_at(w, m->pc, bytes);
        if (flow_is_system_call(bytes, n)) return stop;
        *is_plain = flow_of(m, bytes, n, p, f);
        if (*is_plain) return stop;
        struct position at = ops->where(w->target);
        size_t n_before = why_read_value(w, p, before);
        ops->run(w->target, false, true);
        size_t n_after = why_read_value(w, p, after);
        ops->seek(w->target, at);
        if (n_before != n_after || memcmp(before, after, n_before) != 0 || p->len > WHY_SHOWN) return stop;
    }
}

/* Back to the last store. True: the trace goes on with *p. *stored: a store was found. */
static bool trace_memory(struct why *w, struct place *p, struct known *value, bool *stored) {
    struct position from = w->target->ops->where(w->target);
    struct machine m = {0};
    struct flow f;
    bool is_plain;
    struct stop stop = back_to_store(w, p, &m, &f, &is_plain);
    *stored = stop.reason == STOP_WATCHPOINT;
    if (!*stored && stop.reason != STOP_BEGIN) {
        lose(w, *p, stop.reason == STOP_INTERRUPTED ? "interrupted" : stop.text);
        return false;
    }
    enum origin origin = origins_of_mapping(w, from, p);
    if (origin != ORIGIN_NONE) {
        *stored = false;
        return origin == ORIGIN_MOVED;
    }
    if (!*stored) {
        origins_of_begin(w, p);
        return false;
    }
    if (is_plain) return trace_store(w, p, value, &f, &m);
    origins_of_call(w, p, m.pc);
    return false;
}

/* ---- all of it ---- */

static bool is_of_stack(const struct why_step *s) {
    return strncmp(s->insn, "push", 4) == 0 || strncmp(s->insn, "pop", 3) == 0 || strstr(s->insn, "(%rsp");
}

/* A register that was saved on the stack and loaded again, for instance around a call, tells nothing: both steps are forgotten. */
static bool forget_saved_register(struct why *w) {
    if (w->n < 2) return false;
    const struct why_step *save = &w->steps[w->n - 1], *load = save - 1;
    bool is_load = load->kind == WHY_REGISTER && load->n_inputs == 1 && !load->input[0].place.is_register;
    bool is_save = save->kind == WHY_WRITE && save->n_inputs == 1 && save->input[0].place.is_register;
    if (!is_load || !is_save || save->input[0].place.reg != load->what.reg) return false;
    if (save->thread != load->thread || !is_of_stack(save) || !is_of_stack(load)) return false;
    w->n -= 2;
    return true;
}

/* A factor, an offset or a mask that was followed to a constant explains little: back to the last result between there and the
 * store that has another input, and on with that. */
static bool try_other_input(struct why *w, struct place *next, struct known *value) {
    if (!w->n || !w->steps[w->n - 1].is_constant) return false;
    for (size_t i = w->n - 1; i-- > 0;) {
        struct why_step *s = &w->steps[i];
        size_t other = s->n_inputs > 1 ? most_plausible(s, NO_VALUE) : s->n_inputs;
        if (other < s->n_inputs && !is_stack_register(&s->input[other].place)) {
            if (w->target->ops->seek(w->target, s->at).reason == STOP_FAILED) return false;
            w->n = i + 1;
            follow_input(s, other, next, value);
            return true;
        }
        if (s->kind != WHY_REGISTER) return false;
    }
    return false;
}

static void trace(struct why *w, struct place p, unsigned stores) {
    struct known value = known_from(w->value, w->n_value, w->asked.len);
    for (unsigned done = 0, hops = 0; hops < HOPS;) {
        bool stored = false;
        if (!p.is_register && done == stores) return;
        bool goes_on = p.is_register ? trace_register(w, &p, &value) : trace_memory(w, &p, &value, &stored);
        if (!goes_on && !(p.is_register && try_other_input(w, &p, &value))) return;
        if (stored && forget_saved_register(w)) stored = false;
        hops = stored ? 0 : hops + 1;
        done += stored;
    }
    lose(w, p, "the value has gone through too many registers");
}

bool why_ask(struct why *w, const struct why_question *q) {
    *w = (struct why){.target = q->target, .recording = q->recording, .stream = q->stream, .asked = q->place};
    w->lines = lines_open(q->target);
    if (!w->lines || !q->target->ops->leave(q->target)) {
        why_free(w);
        return false;
    }
    w->n_value = why_read_value(w, &w->asked, w->value);
    const struct target_ops *ops = q->target->ops;
    w->is_elsewhere = !w->asked.is_register && ops->is_elsewhere && ops->is_elsewhere(q->target, w->asked.addr);
    struct machine m = {0};
    if (w->asked.is_register && machine_here(w, &m)) {
        struct known k = value_of(w, &w->asked, &m);
        if (k.is) memcpy(w->value, &k.value, w->n_value = w->asked.len);
    }
    if (!w->asked.is_register && !w->n_value)
        lose(w, w->asked, "nothing is mapped there");
    else
        trace(w, w->asked, q->stores);
    for (size_t i = 0; i < w->n; i++) w->steps[i].at.event |= q->program << POSITION_PROGRAM;
    q->target->ops->come_back(q->target);
    return true;
}

void why_free(struct why *w) {
    lines_close(w->lines);
    free(w->steps);
    w->lines = NULL;
    w->steps = NULL;
    w->n = w->room = 0;
}

bool why_parse_place(struct target *t, const char *text, struct place *out) {
    char *end, name[256];
    *out = (struct place){.len = 8};
    if (text[0] == '$' || text[0] == '%') return flow_register_by_name(text, out);
    out->addr = strtoull(text, &end, 0);
    if (end != text && (*end == ':' || *end == ' ')) out->len = strtoull(end + 1, &end, 0);
    if (end != text) return !*end && out->len && out->addr + out->len > out->addr;
    struct lines *l = lines_open(t);
    snprintf(name, sizeof name, "%s", text);
    bool found = l && lines_variable(l, name, &out->addr, &out->len);
    lines_close(l);
    return found;
}
