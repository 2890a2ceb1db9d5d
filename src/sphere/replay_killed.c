/* An R-thread ends because its process, which shared its memory with others, was killed while it ran. The log has the ticks that it
 * had made, and a hash of memory: between these ticks and the next one it goes on, instruction by instruction, until memory is as it
 * was. Where several places are, they differ in registers only, which nobody will see. */
#include "inproc/fmt.h"
#include "sphere/debug.h"
#include "sphere/memory_hash.h"
#include "sphere/replay_parts.h"
#include "sphere/schedule.h"
#include "sphere/snapshot.h"
#include "sphere/thread_end.h"

static const struct thread *seeking; /* the R-thread whose last instruction is looked for; NULL: none */

static const struct ev_hash *memory_then(const struct event *e) {
    const struct event *then = stream_peek_second();
    return then && then->kind == EV_HASH && then->thread == e->thread ? (const struct ev_hash *)(then + 1) : NULL;
}

static void take(const struct event *e) {
    bool has_hash = memory_then(e);
    stream_take();
    if (has_hash) stream_take();
}

void replay_bury(const struct event *e) {
    struct thread *self = thread_self(), *t = replay_find_thread(e->thread);
    if (!t) replay_diverged(self, e, "an R-thread that does not exist", e->thread, self->number);
    take(e);
    seeking = NULL;
    thread_clear_words_of_killed(t);
    if (t == self) replay_leave_to_others(t);
    if (unlikely(debug_is_on)) debug_thread_ended(t);
    t->awaits = AWAITS_NOTHING;
    replay_count_ended(t);
    schedule_forget(t);
    t->in_use = false;
}

uint64_t replay_budget_of_killed(struct thread *t, const struct event *e) {
    uint64_t now = ticks_total(t->tb);
    if (!memory_then(e)) return UINT64_MAX; /* it waited, or will */
    if (e->ticks < now) replay_diverged(t, e, "tick has passed", e->ticks, now);
    if (now + 1 < e->ticks) return e->ticks - 1 - now;
    t->tb->debug = t->tb->debug_step = true;
    seeking = t;
    return e->ticks - now;
}

bool replay_is_seeking(const struct thread *t) { return unlikely(seeking == t); }

bool replay_seeks_death(struct tblock *tb) {
    const struct event *e = replay_is_seeking(tb->thread) && !debug_is_diverted ? stream_peek() : NULL;
    if (!e || !replay_is_killed(e)) return false;
    const struct ev_hash *then = memory_then(e);
    struct ev_hash now;
    snapshot_clear_host_words(tb->thread);
    if (then && ticks_total(tb) <= e->ticks && memory_hash(&now) &&
        (now.hash != then->hash || now.bytes != then->bytes))
        return true;
    replay_bury(e);
    return true;
}

bool replay_tick_of_killed(struct thread *t) {
    const struct event *e = debug_is_diverted ? NULL : stream_peek();
    if (!e || !replay_is_killed(e) || e->thread != t->number || !memory_then(e)) return false;
    if (ticks_total(t->tb) + 1 < e->ticks) return false;
    if (ticks_total(t->tb) >= e->ticks) replay_bury(e); /* no later than here */
    replay_set_budget(t);
    return true;
}

void replay_step_killed(struct tblock *tb) { replay_seeks_death(tb); }
