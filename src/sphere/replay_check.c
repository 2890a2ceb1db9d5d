#include "sphere/replay_parts.h"

#include "engine/kept.h"
#include "inproc/fmt.h"
#include "inproc/sys.h"
#include "sphere/debug.h"
#include "sphere/sys/model.h"

static uint64_t counted; /* instructions of R-threads that have ended */

void replay_count_ended(struct thread *t) {
    counted += t->tb->count_insns;
    t->tb->count_insns = 0;
}

void replay_count_anew(struct thread *t) {
    counted = 0;
    t->tb->count_insns = 0;
}

uint64_t replay_count_all(void) {
    uint64_t n = counted;
    for (struct thread *t = threads_first(); t; t = t->next)
        if (t->in_use) n += t->tb->count_insns;
    return n;
}

void replay_leave(enum ring_ended how, int status, int exit_status) {
    replay_note_end();
    stream_done(how, status, replay_count_all());
    for (;;) SYS(exit_group, exit_status);
}

void replay_cut_off(void) {
    if (debug_is_on) debug_end(thread_self(), WORKER_ENDED, 0, "");
    kept_save();
    replay_note_cut();
    replay_leave(RING_ENDED_CUT, 0, 0);
}

static const char *kind_name(uint8_t kind) {
    static const char *const names[] = {
#define EVENT_NAME(name, number) [number] = #name,
        EVENT_KINDS(EVENT_NAME)
#undef EVENT_NAME
    };
    return kind < ARRAY_LEN(names) && names[kind] ? names[kind] : "unknown";
}

static const char *call_name(uint64_t nr) {
    return nr < MODEL_CALLS && model_rows[nr].name[0] ? model_rows[nr].name : "unknown call";
}

void replay_diverged(struct thread *t, const struct event *e, const char *what, uint64_t expected, uint64_t seen) {
    char text[256];
    fmt_into(text, sizeof text,
             "replay diverged: stream %lu, thread %u, event %lu (%s%s%s), tick %lu, pc %lx: %s: recorded %lx, now %lx",
             the_stream.number, t->number, stream_taken(), e ? kind_name(e->kind) : "none",
             e && e->kind == EV_SYSCALL ? " " : "", e && e->kind == EV_SYSCALL ? call_name(e->code) : "",
             ticks_total(t->tb), t->tb->pc, what, expected, seen);
    if (debug_is_on) debug_end(t, WORKER_FAILED, 0, text);
    say("%s", text);
    replay_leave(RING_ENDED_DIVERGED, 0, 125);
}

void replay_verify(struct thread *t, const struct event *e, enum event_kind kind, const char *seen) {
    if (e->kind != kind) replay_diverged(t, e, seen, e->kind, kind);
    if (e->ticks != ticks_total(t->tb)) replay_diverged(t, e, "ticks", e->ticks, ticks_total(t->tb));
    uint32_t regs = event_regs(t->tb);
    if (e->regs != regs) replay_diverged(t, e, "registers (hash)", e->regs, regs);
}

void replay_verify_call(struct thread *t, const struct event *e, uint64_t nr, const uint64_t a[6]) {
    if (e->kind != EV_SYSCALL) replay_diverged(t, e, call_name(nr), e->kind, EV_SYSCALL);
    if (e->code != (uint16_t)nr) replay_diverged(t, e, call_name(nr), e->code, nr);
    const struct ev_syscall *s = (const struct ev_syscall *)(e + 1);
    static const char *const names[6] = {"argument 1", "argument 2", "argument 3",
                                         "argument 4", "argument 5", "argument 6"};
    for (int i = 0; i < 6; i++)
        if (s->args[i] != a[i]) replay_diverged(t, e, names[i], s->args[i], a[i]);
    replay_verify(t, e, EV_SYSCALL, "system call");
}

void replay_check_result(struct thread *t, uint64_t nr, long recorded, long now) {
    if (recorded != now) replay_diverged(t, NULL, call_name(nr), (uint64_t)recorded, (uint64_t)now);
}
