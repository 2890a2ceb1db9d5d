/* Hurrying threads: memory of evicted translations can be reused only when every thread has passed a safepoint, and a thread
 * that loops in linked code passes none by itself. A signal of our own brings it there. Nobody who is in a system call is
 * disturbed: such threads hold nothing of the cache. */
#ifndef REPRISE_HURRY_H
#define REPRISE_HURRY_H

#include "sphere/thread.h"

/* engine_host.hurry. Returns at once; oldest_epoch tells when all are there. */
void hurry_threads(uint64_t epoch);

/* Brings one thread to a safepoint, if it is in the cache. */
void hurry_thread(struct thread *t);

/* Interrupts a thread of another process of the sphere, or of this one, wherever it is, in a call, too. */
void hurry_foreign(int tgid, int tid);

/* Continues a process that the kernel has stopped. The program does not see it. */
void hurry_stopped(int tgid);

/* No such signal reaches the calling thread until its mask is set again. */
void hurry_hold(void);

/* Whether a signal that arrived is one of these. */
#define HURRY_SIGNAL 4 /* SIGILL */
bool hurry_is_kick(const struct siginfo_raw *info);
/* Whether it may be one: where a user's signals are as many as RLIMIT_SIGPENDING lets them be, the kernel forgets who sent the next. */
bool hurry_may_be_kick(const struct siginfo_raw *info);

/* A fault has come. */
void hurry_swallowed(struct tblock *tb, int signo);

#endif
