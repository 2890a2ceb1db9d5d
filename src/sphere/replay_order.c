#include "sphere/replay_parts.h"

#include "inproc/str.h"
#include "sphere/debug.h"
#include "sphere/schedule.h"
#include "sphere/sigframe.h"
#include "sphere/snapshot.h"

struct thread *replay_find_thread(uint32_t number) {
    for (struct thread *t = threads_first(); t; t = t->next)
        if (t->in_use && t->scheduled && t->number == number) return t;
    return NULL;
}

static struct thread *whose_turn(struct thread *t, const struct event *e) {
    struct thread *other = replay_find_thread(e->thread);
    if (!other) replay_diverged(t, e, "an R-thread that does not exist", e->thread, t->number);
    return other;
}

const struct event *replay_next_of_all(void) {
    for (;;) {
        const struct event *e = stream_peek();
        if (!e) replay_cut_off();
        if (replay_is_killed(e)) {
            replay_bury(e);
            continue;
        }
        if (e->kind != EV_RELEASE || !(e->flags & EVF_AFTER)) return e;
        replay_release(e);
        stream_take();
    }
}

const struct event *replay_next_of(struct thread *t) {
    for (;;) {
        const struct event *e = replay_next_of_all();
        if (e->thread == t->number) return e;
        t->tb->epoch = EPOCH_IDLE;
        schedule_switch(whose_turn(t, e));
    }
}

/* Vector and x87 registers that a checkpoint did not have, though this process may have begun with it. */
static void take_extended(struct thread *t, const struct event *e) {
    static uint8_t extended[SNAPSHOT_EXTENDED_MAX] __attribute__((aligned(64)));
    const struct ev_extended *v = (const struct ev_extended *)(e + 1);
    size_t size = sigframe_extended_size();
    if (t->owes) {
        if (v->xcr0 != sigframe_extended_mask() || v->len != size || size > sizeof extended)
            replay_diverged(t, e, "size of the vector registers", v->len, size);
        memcpy(extended, v + 1, size);
        sigframe_load_extended(extended);
        t->owes = false;
    }
    stream_take();
}

const struct event *replay_next(struct thread *t) {
    for (;;) {
        const struct event *e = replay_next_of(t);
        if (e->kind == EV_ACQUIRE) {
            replay_acquire_next(t, e);
        } else if (e->kind == EV_EXTENDED) {
            take_extended(t, e);
        } else if (e->kind == EV_RELEASE && (e->flags & EVF_AT_GATE)) {
            replay_release(e);
            stream_take();
        } else if (e->kind == EV_POKE && (e->flags & EVF_AT_GATE)) {
            replay_poke(t, e);
        } else {
            return e;
        }
    }
}

void replay_leave_to_others(struct thread *t) {
    if (unlikely(debug_is_on)) debug_thread_ended(t);
    const struct event *e = replay_next_of_all();
    t->awaits = AWAITS_NOTHING; /* its slot is in use until another one has begun */
    t->tb->epoch = EPOCH_IDLE;
    replay_count_ended(t);
    schedule_leave(whose_turn(t, e));
}
