#include "sphere/checkpoint.h"

#include <linux/mman.h>
#include <linux/time_types.h>

#include "ckpt/rt/save.h"
#include "inproc/arena.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/channel.h"
#include "sphere/event_log.h"
#include "sphere/file_changes.h"
#include "sphere/schedule.h"
#include "sphere/shared.h"
#include "sphere/shared_left.h"
#include "sphere/sigframe.h"
#include "sphere/snapshot.h"
#include "sphere/sys/special.h"
#include "sphere/vdso.h"

#define LOOK_CALLS 16         /* from one look at the clock to the next */
#define LOOK_TICKS 20000000ul /* some 30 ms */
#define LOOK_AGAIN_NS 50000000ull
#define END_LEAST_NS 500000000ull
#define EXIT_MOST_NS 10000000000ull   /* so much is never left to replay in front of an exit */
#define SHARED_MOST (256ull << 20)    /* bytes of shared memory that is owned, which are copied for each checkpoint */
#define SHARED_AGAIN_NS 2000000000ull /* counting them takes its time */
#define CLOCK_MONOTONIC_ 1
#define CLOCK_REALTIME_ 0

bool checkpoint_is_on;

static uint64_t number;       /* of the next one */
static uint64_t last_ns;      /* when the last one was taken, or the stream began */
static uint64_t behind_event; /* the last one was the last event so far, if this is how many there are */
static uint64_t ended_ticks;

static uint64_t clock_ns(int clock) {
    int64_t t[2];
    if (!vdso_clock_gettime || vdso_clock_gettime(clock, t) != 0) SYS(clock_gettime, clock, t);
    return (uint64_t)t[0] * 1000000000ull + (uint64_t)t[1];
}

static const struct save_more shared_memory = {.save = left_save, .saved = left_saved};

void checkpoint_start(void) {
    save_more = &shared_memory;
    number = 0;
    behind_event = UINT64_MAX;
    ended_ticks = 0;
    save_start(fd_own() + 1, the_stream.ring, the_stream.number);
    checkpoint_is_on =
        save_interval_ms && the_stream.ring < CHANNEL_RINGS && sigframe_extended_size() <= SNAPSHOT_EXTENDED_MAX - 8;
    if (checkpoint_is_on) last_ns = clock_ns(CLOCK_MONOTONIC_);
}

/* ---- what others must see ---- */

void checkpoint_park(struct thread *t, bool all) {
    if (!checkpoint_is_on) return;
    schedule_park(t, schedule_fs_base(), all);
    t->parked = all;
}

void checkpoint_park_new(struct thread *child, uint64_t fs_base) {
    if (!checkpoint_is_on) return;
    schedule_park(child, fs_base, true);
    child->parked = true;
}

void checkpoint_pay(struct thread *t) {
    size_t size = sigframe_extended_size();
    static uint8_t extended[SNAPSHOT_EXTENDED_MAX] __attribute__((aligned(64)));
    memset(extended, 0, size);
    sigframe_save_extended(extended);
    struct event *e = event_new(t, EV_EXTENDED, 0, sizeof(struct ev_extended) + size);
    struct ev_extended *v = (struct ev_extended *)(e + 1);
    memset((uint8_t *)e + e->size - 8, 0, 8);
    *v = (struct ev_extended){.xcr0 = sigframe_extended_mask(), .len = (uint32_t)size};
    memcpy(v + 1, extended, size);
    t->owes = false;
}

void checkpoint_forget(struct thread *t) {
    ended_ticks += ticks_total(t->tb);
    t->awaits = AWAITS_NOTHING;
    schedule_forget(t);
}

void checkpoint_op(struct thread *t) {
    t->debugged.op_event = stream_written();
    t->debugged.op_ticks = ticks_total(t->tb);
    t->debugged.has_op = true;
    t->debugged.in_call = false;
}

/* ---- taking ---- */

static bool is_readable_by_others(const struct thread *t, const struct thread *self) {
    if (!t->in_use || t->service || t->awaits == AWAITS_NOTHING) return true;
    if (t->stopped_inside || t->trace_step) return false; /* a tracer's business */
    bool same_filters = t->seccomp.mode == self->seccomp.mode && t->seccomp.last == self->seccomp.last;
    return t->process == self->process && !t->vforked && same_filters && (t == self || t->scheduled);
}

/* Of which nobody keeps track. *numbered: there is memory that is shared with others, or may be. */
static bool has_foreign_memory(bool *numbered) {
    struct mapping m;
    *numbered = shared_active;
    for (size_t i = 0; aspace_nth(i, &m); i++) {
        if (m.runtime || m.tracked || (m.flags & MAP_TYPE) == MAP_PRIVATE) continue;
        bool is_anonymous = m.object && (m.flags & MAP_ANONYMOUS);
        *numbered |= is_anonymous;
        if (!is_anonymous && ((m.prot & PROT_WRITE) || !m.file.ino)) return true;
    }
    return false;
}

static uint64_t again_ns; /* what makes it impossible is not looked at all the time */

static bool can_save_shared(uint64_t now) {
    bool numbered;
    save_shared_pages = 0;
    if (has_foreign_memory(&numbered)) return false;
    if (!numbered) return true;
    if (shared_is_awaited()) return false; /* where they are is no place to begin at */
    if (left_can_be_saved(SHARED_MOST / PAGE_SIZE, &save_shared_pages)) return true;
    again_ns = now + SHARED_AGAIN_NS;
    return false;
}

static bool is_possible(const struct thread *self, uint64_t now) {
    if (file_changes_any() || __atomic_load_n(&the_channel->stopped, __ATOMIC_ACQUIRE)) return false;
    if (the_runtime.has_ldt) return false;
    for (struct thread *t = threads_first(); t; t = t->next)
        if (!is_readable_by_others(t, self)) return false;
    return can_save_shared(now);
}

static void mark(struct thread *t, uint8_t flags, uint32_t why) {
    struct event *e = event_new(t, EV_CHECKPOINT, 0, sizeof(struct ev_checkpoint));
    struct ev_checkpoint *v = (struct ev_checkpoint *)(e + 1);
    e->flags = flags;
    *v = (struct ev_checkpoint){.number = number++, .why = why};
    v->threads = snapshot_threads(t, &v->n_threads);
    stream_commit();
    behind_event = stream_written();
}

static bool take(struct thread *t, uint8_t flags, uint32_t why, bool wait) {
    if (!flags) snapshot_clear_host_words(t);
    if (!(flags & EVF_AFTER)) checkpoint_op(t);
    uint64_t event = stream_written() + 1;
    uint64_t position = stream_position() + sizeof(struct event) + sizeof(struct ev_checkpoint);
    size_t size = snapshot_size(t);
    void *state = arena_try_pages(size);
    if (!state) return false;
    snapshot_write(t, event, position, ended_ticks, state);
    struct ckpt_place place = {.event = event,
                               .ticks = ticks_total(t->tb),
                               .time_ns = clock_ns(CLOCK_REALTIME_),
                               .thread = t->number,
                               .why = why};
    bool taken = save_checkpoint(&place, state, size, wait);
    arena_free_pages(state, size);
    last_ns = clock_ns(CLOCK_MONOTONIC_);
    if (!taken) return false;
    for (struct thread *who = threads_first(); who; who = who->next)
        if (who != t && who->in_use && who->scheduled && !who->parked) who->owes = true;
    mark(t, flags, why);
    return true;
}

bool checkpoint_consider(struct thread *t, uint8_t flags) {
    static uint32_t calls;
    if (likely(!checkpoint_is_on)) return false;
    if ((flags & EVF_AFTER) && ++calls % LOOK_CALLS) return false;
    if (unlikely(t->kicked)) return false; /* another process waits */
    uint64_t now = clock_ns(CLOCK_MONOTONIC_);
    if (now < again_ns || !save_is_due(now)) return false;
    again_ns = now + LOOK_AGAIN_NS;
    return is_possible(t, now) && save_can_be_afforded(now) && take(t, flags, CHECKPOINT_TIMER, false);
}

bool checkpoint_at_end(struct thread *t, uint8_t flags, uint32_t why) {
    if (!checkpoint_is_on || behind_event == stream_written()) return false;
    uint64_t now = clock_ns(CLOCK_MONOTONIC_), since = now - last_ns;
    if (since < MIN(save_interval_ms * 500000ull, END_LEAST_NS) || !is_possible(t, now)) return false;
    /* a crash is what people want to see at once; the end of a short run is near its start anyway */
    if (why == CHECKPOINT_EXIT && since < EXIT_MOST_NS && !save_can_be_afforded(now)) return false;
    return take(t, flags, why, true);
}

uint64_t checkpoint_budget(uint64_t n) { return checkpoint_is_on ? MIN(n, LOOK_TICKS) : n; }
