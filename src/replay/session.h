/* Session: the worker processes of a timeline (log/worker.h), their rings fed, questions asked and answered.
 * Owner: one timeline, one thread. */
#ifndef REPRISE_REPLAY_SESSION_H
#define REPRISE_REPLAY_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "controller/feed.h"
#include "controller/start_runtime.h"
#include "log/recording.h"
#include "log/worker.h"

struct worker {
    bool in_use;
    uint32_t slot;
    pid_t pid;
    bool is_gone;
    struct worker_stop stop;
    uint64_t breaks; /* version of the breakpoints it has */
    uint64_t state;  /* of its memory: the same number, the same contents */
};

struct session {
    const struct recording *recording;
    struct channel *channel;
    int channel_fd, work_fd;
    int pages_fd; /* page log; -1: nobody has wanted it yet */
    struct worker_control *control;
    struct feed feed;
    const struct options *options; /* of the runtime */
    struct worker workers[WORKER_SLOTS];
    uint64_t states; /* numbers that were given to workers */
    pid_t dying[4 * WORKER_SLOTS];
    int n_dying;
};

struct session_target {
    uint64_t stream;
    bool quiet;      /* outputs are not repeated */
    bool from_start; /* without the checkpoints of the recording */
};

/* Starts the first worker, which stands at the first instruction of the program in that stream. NULL: why says. */
struct worker *session_open(struct session *, const struct recording *, const struct options *, struct session_target,
                            char *why, size_t cap);
void session_close(struct session *);
/* Another one, which begins with a checkpoint (log/image.h) and stands there. NULL: it cannot be used. */
struct worker *session_restore(struct session *, int image);
/* The same in the background: the image is made in the new process, which then runs. NULL: there is none. Nothing may be asked of
 * it before session_await(), which waits until it has stopped; false: it failed. */
struct worker *session_send(struct session *, int (*make_image)(void *), void *arg, const struct worker_run *run);
bool session_await(struct session *, struct worker *w);
bool session_has_arrived(struct session *, const struct worker *w);

/* A copy that stands where w stands. NULL: there is none to be had. */
struct worker *session_fork(struct session *, struct worker *w);
void session_kill(struct session *, struct worker *w);

/* False: the worker is gone, which stop.text says. */
bool session_run(struct session *, struct worker *w, const struct worker_run *run);
uint64_t session_ask(struct session *, struct worker *w, enum worker_ask what, uint64_t a, uint64_t b);
struct worker_slot *session_slot(struct session *, const struct worker *w);

/* ancestor.c: an image of the last checkpoint in front of the forks that lead from a stream of the chain to its end, and the stream it
 * is of; -1: there is none. */
int ancestor_image(const struct recording *, const uint64_t *chain, uint32_t n, uint64_t *stream);

#endif
