/* The runtime's end of the channel (log/channel.h): the event stream of this address space.
 * Invariant: only the R-thread that has the turn reads or writes events; there is no lock. */
#ifndef REPRISE_SPHERE_CHANNEL_H
#define REPRISE_SPHERE_CHANNEL_H

#include "inproc/types.h"
#include "log/channel.h"

struct stream { /* where a stream's events go */
    uint64_t number;
    uint32_t ring;
};

/* Maps the channel; dies if that cannot be. */
struct channel *channel_attach(int fd);
extern struct channel *the_channel; /* NULL: no recording, no replay */

/* Recording: whether the controller is still there to take anything. */
bool channel_controller_lives(void);

/* Recording has ended though the program has not: what is written leads nowhere. */
bool channel_is_stopped(void);

/* Recording: our number where the controller lives; in another PID namespace getpid() gives one that is somebody else's there. */
uint32_t channel_pid(void);
/* The same, as an open /proc has it; getpid() if it is none. */
uint32_t channel_number_in(int proc_fd);
/* Whether nobody has such a number. */
bool channel_is_gone(uint32_t pid);

/* Recording: a number and a free ring for a new stream; false: there is none, or recording has stopped. */
bool stream_new(struct stream *s);
/* Recording: the stream is not needed after all (a failed fork or exec). */
void stream_discard(const struct stream *s);
/* Recording: the stream is that of a child, which may be killed before it can say so. */
void stream_give(const struct stream *s, uint32_t pid);
/* Makes it the stream of this address space; maps its ring. */
void stream_attach_writer(int fd, const struct stream *s);
/* False: the recording has no such stream. */
bool stream_attach_reader(int fd, uint64_t number);
extern struct stream the_stream;

/* ---- recording ---- */

/* Room for an event of `size` bytes (head included, rounded up to 8); waits while the ring is full. Never NULL: when recording
 * has stopped, the memory leads nowhere. */
void *stream_reserve(size_t size);
/* --debug stop-at: recording stops in front of the event with this number, of all streams together; 0: it does not. */
extern uint64_t stream_stop_at;
/* Takes the last one back, which has not been committed. */
void stream_cancel(const struct event *e);
/* Takes back all that has not been committed: who wrote it was killed. */
void stream_roll_back(void);
/* What has been reserved since the last commit becomes visible to the controller. */
void stream_commit(void);
/* Recording has stopped, and this process goes on in a way that no log could repeat: nothing that is not committed is recorded. */
void stream_give_up(void);
/* A process that is not recorded, as its parent was: its events lead nowhere. */
void stream_abandon(void);
/* Closes the ring of a stream that ended with execve. */
void stream_close_other(uint32_t ring);
/* Events and bytes of the stream so far, with what is reserved. */
uint64_t stream_written(void);
uint64_t stream_position(void);
/* No more events: commits and lets the controller have the ring. */
void stream_close(void);

/* ---- replay ---- */

/* The same from a place in the middle: behind so many bytes, which were so many events. */
bool stream_attach_reader_at(int fd, uint64_t number, uint64_t position, uint64_t events);
/* The next event without taking it; NULL: there is none any more. Checked: its size is right for its kind. */
const struct event *stream_peek(void);
/* The event behind the next one; NULL likewise. */
const struct event *stream_peek_second(void);
void stream_take(void);
/* Number of events taken so far. */
uint64_t stream_taken(void);
/* After a fork: the ring is the parent's. What was looked at is gone until stream_resume, which gets a ring of our own that
 * goes on where this one stood. */
void stream_pause(void);
void stream_resume(void);
/* Tells the controller how it ended. */
void stream_done(enum ring_ended how, int status, uint64_t instructions);

/* Replay: whether this process waits for outputs of others (outputs.c). */
void channel_awaits_output(bool yes);

#endif
