/* What the files of the timeline share. */
#ifndef REPRISE_REPLAY_TIMELINE_PARTS_H
#define REPRISE_REPLAY_TIMELINE_PARTS_H

#include "replay/session.h"
#include "replay/stored.h"
#include "replay/timeline.h"

#define CHECKPOINTS_MAX 28
#define AHEAD_MAX 24

/* How far before a place that somebody will go back from checkpoints are left. */
#define NEAR_EVENTS 3
#define NEAR_TICKS 4
static const uint32_t near_events[NEAR_EVENTS] = {4096, 256, 16};
static const uint32_t near_ticks[NEAR_TICKS] = {1 << 24, 1 << 20, 1 << 15, 1 << 10};

struct timeline {
    struct target target;
    struct session session;
    struct timeline_options options;
    char store[4096];
    uint64_t stream, program; /* which of the process's programs, from 0 on */
    int pid;
    char exe[513];
    uint64_t auxv_start, auxv_end, arg_start, arg_end;

    struct worker *now; /* stands at the present, or further on along the trail */
    struct trail *trail;
    struct memory *memory;
    struct worker *diversion;             /* or there, but has left the recording */
    struct worker *left, *left_diversion; /* during an excursion: the present to come back to */
    struct position begin;
    struct worker *checkpoints[CHECKPOINTS_MAX + 16]; /* by place, the first stands at the begin */
    size_t n_checkpoints, most_checkpoints;
    struct stored stored; /* of the recording */
    struct worker *scout; /* on its way to shortly before the end; NULL: none */
    struct position scout_from;
    struct worker *ahead[AHEAD_MAX]; /* at the hits before the present one, the nearest last */
    size_t n_ahead, wants_ahead;
    uint64_t ahead_version; /* of the breakpoints that were searched for */
    uint64_t interval_us;   /* of forward execution between two of them */

    struct worker_break *breaks;
    size_t n_breaks, breaks_room;
    uint8_t *conditions; /* struct worker_condition, one after the other */
    size_t conditions_len;
    uint64_t version; /* of the breakpoints: a hash; 0: none */
    uint64_t signals; /* to stop for: bit N - 1 for signal N */
    struct worker_catches catches;
    bool has_catches;
    enum { NOT_LOOKED, HAS_SIGNALS, NO_SIGNALS } has_signals;
};

static inline struct timeline *timeline_of(struct target *t) { return (struct timeline *)t; }
static inline struct worker *stands(struct timeline *t) { return t->diversion ? t->diversion : t->now; }
/* There is nothing more to run. */
static inline bool worker_is_over(const struct worker *w) {
    uint32_t why = w->stop.reason;
    return why == WORKER_ENDED || why == WORKER_EXITED || why == WORKER_EXEC || why == WORKER_FAILED;
}
static inline struct position position_of(const struct worker_place *p) {
    return (struct position){p->event, p->ticks, p->steps};
}

/* checkpoints.c */

/* A copy of w is kept, unless there is one at its place. */
void checkpoint_add(struct timeline *, struct worker *w);
/* How often and how many: what a copy costs is memory, and a page fault for each page that is written after it. */
void checkpoints_plan(struct timeline *, const struct worker *w);
/* Index of the last checkpoint not behind `to`. There always is one. */
size_t checkpoint_before(const struct timeline *, struct position to);
/* The same strictly before it; false: there is none. */
bool checkpoint_strictly_before(const struct timeline *, struct position limit, size_t *i);
/* A checkpoint of the recording that lies before `to` (strictly: not at it) and nearer than any other place in `nearest`: a worker
 * that stands there, of which a copy is kept. NULL: there is none. */
struct worker *checkpoint_restore(struct timeline *, struct position to, bool strictly, struct position nearest);
/* What checkpoint k of the recording needs to know of the begin is in t->stored. */
bool inherited_fetch(struct timeline *, size_t k);
/* The present was reached by a restore: somebody sets out, in the background, from the checkpoint before to shortly before the
 * present, for those who will want to step back from here. */
void scout_send(struct timeline *);
/* Somebody wants to go to p: if the scout is on the way there, he is waited for, and a checkpoint is where he is. */
void scout_collect(struct timeline *, struct position p);
/* The same, unless he is still on his way. */
void scout_look(struct timeline *);
/* Those that are not needed go; the nearer to `work`, the denser they may be. */
void checkpoints_thin(struct timeline *, uint64_t work);

/* breakpoints.c */
/* The worker gets the breakpoints that there are, or none. */
void breakpoints_arm(struct timeline *, struct worker *w, bool with);
/* What is watched for writes, as it is at the present: for comparing. 0: nothing, or too much for that. */
size_t breakpoints_watched(struct timeline *, uint8_t *to, size_t cap);
/* Where the byte is that is at `offset` there. */
uint64_t breakpoints_watched_at(const struct timeline *, size_t offset);
/* Members of target_ops: */
bool breakpoints_set(struct target *, enum break_kind, uint64_t addr, size_t len);
bool breakpoints_clear(struct target *, enum break_kind, uint64_t addr, size_t len);
void breakpoints_set_conditions(struct target *, uint64_t addr, const struct condition *list, size_t n);

/* inspect.c */
/* False: there is no such thread at the present place. */
bool inspect_thread(struct timeline *, int tid, struct worker_thread *out);
/* Whether the copy that was changed stands where the recording does: no function is being called in it. */
bool inspect_is_where_recorded(struct timeline *);
/* Members of target_ops: */
bool inspect_registers(struct target *, int tid, struct registers *out);
bool inspect_general(struct target *, int tid, struct registers *out);
bool inspect_set_registers(struct target *, int tid, const struct registers *in);
size_t inspect_memory(struct target *, uint64_t addr, void *to, size_t n);
bool inspect_is_elsewhere(struct target *, uint64_t addr);
bool inspect_has_left(struct target *);
bool inspect_set_memory(struct target *, uint64_t addr, const void *from, size_t n);
size_t inspect_threads(struct target *, struct thread_facts *out, size_t cap);
size_t inspect_regions(struct target *, struct memory_region *out, size_t cap);
size_t inspect_auxv(struct target *, void *to, size_t cap);
size_t inspect_arguments(struct target *, void *to, size_t cap);
size_t inspect_siginfo(struct target *, void *to, size_t cap);
bool inspect_exe_path(struct target *, char *out, size_t cap);
int inspect_open_file(struct target *, const char *path);

/* memory.c */
bool memory_open(struct timeline *);
void memory_close(struct timeline *);
/* Bytes read; less than n where memory ends. */
size_t memory_read(struct timeline *, struct worker *, uint64_t addr, void *to, size_t n);

/* trail.c: going back step by step, and on */
bool trail_open(struct timeline *);
void trail_close(struct timeline *);
/* Whether the present is a place of the trail, and the worker stands further on. */
bool trail_is_ahead(const struct timeline *);
/* Brings a worker to the present. False: it failed, and the present is where the worker was. */
bool trail_settle(struct timeline *);
/* Somebody wants more than a trail has: it is not worth laying one ahead now. */
void trail_is_not_enough(struct timeline *);
/* The worker goes elsewhere: the trail does not lead to it. */
void trail_drop(struct timeline *);
/* The same, and by what. */
void trail_moved(struct timeline *, bool backward, bool step);
/* Steps back, or goes back to the last breakpoint, along the trail. False: it does not go there. */
bool trail_step(struct timeline *, struct stop *out);
bool trail_search(struct timeline *, struct stop *out);
/* Steps on along it; after some steps in a row it is laid ahead. */
bool trail_step_on(struct timeline *, struct stop *out);
/* Of the present, where trail_is_ahead(): */
struct position trail_position(const struct timeline *);
const struct worker_past *trail_here(const struct timeline *);
size_t trail_read(struct timeline *, uint64_t addr, void *to, size_t n);

/* excursion.c: members of target_ops */
bool excursion_leave(struct target *);
void excursion_come_back(struct target *);
struct stop excursion_find_store(struct target *, uint64_t addr, size_t len);
size_t excursion_history(struct target *, uint64_t ticks, uint64_t written, struct past *out, size_t cap,
                         struct position *from, bool *at_event);

/* search.c */
/* Backwards to the last hit of a breakpoint, watchpoint or signal, or to the begin. */
struct stop search_back(struct timeline *);
/* Behind a step back of one thread from `from`: what others did meanwhile may be something to stop for. */
struct stop search_stepped_over(struct timeline *, struct position from, struct stop stepped);
/* The present is left by another way: what was prepared for the next search back is of no use. */
void search_forget(struct timeline *);

/* timeline.c: what searches and excursions are made of. */

struct stop timeline_stop_of(const struct worker *w);
struct stop timeline_failure(const char *text);
struct worker_run timeline_run_to(struct position p);
/* The present is where w stands. */
void timeline_become(struct timeline *, struct worker *w);
/* In front of what takes events from `event` on. */
struct stop timeline_before_op(struct timeline *, uint64_t event, uint64_t ticks);
struct stop timeline_go_to_begin(struct timeline *);
/* A worker that stands at p, or at the first place behind it; NULL: it failed. near: checkpoints are left shortly before p. */
struct worker *timeline_reach(struct timeline *, struct position p);
struct worker *timeline_reach_near(struct timeline *, struct position p);
/* Finds out the exact position of the present. */
bool timeline_resolve(struct timeline *);
struct stop timeline_reverse_continue(struct timeline *);
/* `version` for the breakpoints there are. */
uint64_t timeline_hash_breaks(const struct timeline *);

/* timeline.c: a copy in which things may be changed. NULL: none. */
struct worker *timeline_divert(struct timeline *);
void timeline_return(struct timeline *);

#endif
