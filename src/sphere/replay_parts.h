/* The parts of replay, for each other: replay.c (gate, start), replay_order.c (the log's next event), replay_check.c
 * (comparing), replay_stops.c (what happens at ticks: signals, turns, stops, checkpoints), replay_calls.c (effects of system
 * calls), replay_tasks.c (threads, processes, exec), replay_shared.c (shared memory). */
#ifndef REPRISE_REPLAY_PARTS_H
#define REPRISE_REPLAY_PARTS_H

#include "sphere/channel.h"
#include "sphere/event_log.h"
#include "sphere/mode.h"
#include "sphere/replay.h"

/* ---- replay_killed.c: processes that share memory with others and were killed ---- */

/* Whether that is what e says. */
static inline bool replay_is_killed(const struct event *e) { return e->kind == EV_EXIT && (e->flags & EVF_AFTER); }
/* e, the next event, says it. Does not return if it is about the R-thread that runs. */
void replay_bury(const struct event *e);
/* e, the next event, says it of t, which goes on until then: ticks until it is looked for. */
uint64_t replay_budget_of_killed(struct thread *t, const struct event *e);
/* A budget of t's has ended. False: that has other reasons. */
bool replay_tick_of_killed(struct thread *t);

/* ---- replay_check.c ---- */

/* Instructions, for replay --count: those of an R-thread that ends stay counted; a forked child begins anew. */
void replay_count_ended(struct thread *t);
void replay_count_anew(struct thread *t);
uint64_t replay_count_all(void);

void replay_leave(enum ring_ended how, int status, int exit_status) __attribute__((noreturn));
/* The log has no more events, though the process had not ended: it was killed, or the recording was. */
void replay_cut_off(void) __attribute__((noreturn));
/* The worst that can happen. Says where, what was expected and what was seen. */
void replay_diverged(struct thread *t, const struct event *e, const char *what, uint64_t expected, uint64_t seen)
    __attribute__((noreturn));

void replay_verify(struct thread *t, const struct event *e, enum event_kind kind, const char *seen);
void replay_verify_call(struct thread *t, const struct event *e, uint64_t nr, const uint64_t a[6]);
void replay_check_result(struct thread *t, uint64_t nr, long recorded, long now);

/* ---- replay_order.c ---- */

struct thread *replay_find_thread(uint32_t number);
/* The next event of the process, but for pages that others took while all R-threads waited. */
const struct event *replay_next_of_all(void);
/* The next event, once it is one of t's: until then others run. */
const struct event *replay_next_of(struct thread *t);
/* The same, but for pages that t acquires or hands over on its way there. */
const struct event *replay_next(struct thread *t);
/* t has ended. */
void replay_leave_to_others(struct thread *t) __attribute__((noreturn));

/* ---- replay_shared.c ---- */

/* Who waits for pages of this process need not wait any longer. */
void replay_note_end(void);
/* Its recording stops before the process has ended. */
void replay_note_cut(void);
void replay_release(const struct event *e);
void replay_acquire_next(struct thread *t, const struct event *e);
/* mode.acquire, mode.access */
void replay_acquire(struct thread *t, struct shared_at at, gaddr addr);
void replay_copy(struct thread *t, gaddr addr, bool faulted);
bool replay_access(struct thread *t, struct shared_at at, const struct value_access *a, bool faulted);

/* ---- replay_stops.c ---- */

struct resumed {
    bool calls; /* goes on with the call that it stopped at */
    int signal; /* is delivered next; 0: none */
};

/* Before t goes on: what is right behind the last event, and how far it may go. */
void replay_arm(struct thread *t);
void replay_stay_at_tick(struct thread *t);
void replay_deliver(struct thread *t, const struct event *e);
/* t stops for its tracer here, and goes on as that one wanted. */
struct resumed replay_stop(struct thread *t, const struct event *e);
/* The same for one that is stopped already. */
struct resumed replay_rest_of_stop(struct thread *t);
/* Memory written by another process. */
void replay_poke(struct thread *t, const struct event *e);
/* The recording has a checkpoint here: the R-threads must be as they were. */
void replay_pass_checkpoint(struct thread *t, const struct event *e);
/* mode.before_signal, .fault, .signal, .tick_budget, .insn */
bool replay_before_signal(struct thread *t, struct pending_signal *s, uint8_t *flags);
bool replay_fault(struct thread *t, const struct pending_signal *s, bool kills);
bool replay_signal(struct thread *t, struct pending_signal *s, uint8_t flags);
void replay_tick_budget(struct tblock *tb);
void replay_insn(struct tblock *tb);
void replay_x87_pointers(struct tblock *tb, uint64_t pointers[2]);

/* ---- replay_calls.c ---- */

/* Memory as an OUT, MEMORY or POKE event has it. */
void replay_put(struct thread *t, const struct event *e);
void replay_take_outs(struct thread *t, uint32_t n);
/* The MEMORY events that are next. */
void replay_take_memory(struct thread *t);
/* The SYSCALL event of the call, compared and taken; its outputs are still to come. */
struct ev_syscall replay_take_call(struct thread *t, const struct event *e, uint64_t nr, const uint64_t a[6]);
void replay_ordinary(struct tblock *tb, const struct event *e, uint64_t nr, uint64_t a[6], gaddr next, uint64_t flags);

/* ---- replay_tasks.c ---- */

/* fork, vfork, clone, clone3 */
void replay_clone(struct tblock *tb, uint64_t nr, uint64_t a[6], gaddr next, uint64_t flags);
void replay_exec(struct tblock *tb, uint64_t nr, uint64_t a[6], gaddr next, uint64_t flags);
void replay_exit(struct thread *t) __attribute__((noreturn));
/* mode.thread_killed, .death */
void replay_thread_killed(struct thread *t, int signo);
void replay_death(struct thread *t, int signo);

#endif
