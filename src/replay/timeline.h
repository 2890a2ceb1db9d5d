/* Timeline: forward and reverse execution of one program of a recorded process, as the target of a debugger (rsp/target.h).
 *
 * The present is a worker that stands still. Checkpoints are workers that were forked while others ran forward and stand still
 * ever since; going back is a copy of one, run forward to where it should be. */
#ifndef REPRISE_REPLAY_TIMELINE_H
#define REPRISE_REPLAY_TIMELINE_H

#include "controller/start_runtime.h"
#include "log/recording.h"
#include "log/worker.h"
#include "rsp/target.h"

struct timeline_options {
    const struct recording *recording; /* stays open as long as the timeline */
    int pid;                           /* as recorded; 0: the initial process */
    int program;                       /* which of its programs, from 1 on; 0: the last */
    bool quiet;                        /* what the program printed is not printed again */
    bool from_start;                   /* without the checkpoints of the recording */
    const char *store;                 /* directory with the recording's files */
    const struct options *options;     /* of the runtime: cache, seed, store */
};

/* NULL: why says. */
struct target *timeline_open(const struct timeline_options *, char *why, size_t cap);

/* All of them, of any kind. */
void timeline_clear_breaks(struct target *);
/* The stream that is debugged, and which program of the process it is, from 0 on. */
uint64_t timeline_stream(struct target *);
uint64_t timeline_program(struct target *);

/* Pages of shared memory at the present place that are not zero, from `page` on, whether or not they are mapped: the first
 * TIMELINE_SHARED of them. SIZE_MAX: the worker is gone. */
#define TIMELINE_SHARED (WORKER_DATA / sizeof(struct worker_shared))
size_t timeline_read_shared(struct target *, uint64_t object, uint64_t page, struct worker_shared *to);

/* For tests: hash of the program's private memory at the present place. */
uint64_t timeline_memory_hash(struct target *);

#endif
