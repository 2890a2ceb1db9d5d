/* Listeners of seccomp (SECCOMP_RET_USER_NOTIF).
 * Filters of the program are interpreted (seccomp.h), but who listens, and may be of another process, has a descriptor of the kernel's and
 * is asked by the kernel. So a filter with a listener is there twice: ours, and one in the kernel that asks about calls which
 * are issued at one place of the runtime, gate_ask(), and allows all others. What ours wants to ask about is issued there.
 * A call that the listener lets go on must not be made there, but by the gate: a listener of the sphere that says so answers
 * LISTENER_CONTINUES instead. */
#ifndef REPRISE_LISTENER_H
#define REPRISE_LISTENER_H

#include "sphere/thread.h"

#define LISTENER_CONTINUES 0x7265707269736521l /* no result of a call */

/* The kernel's filter, for the calling thread. The listener, or -errno. */
long listener_make(uint64_t flags);
/* All threads of the process get the kernel's filters of the calling one. 0 or -errno. */
long listener_sync(void);

/* mode.ask: asks about a call. Its result, LISTENER_CONTINUES or GATE_ABORTED. */
long listener_ask(struct tblock *t, uint64_t nr, const uint64_t a[6]);
/* The same in two parts: to wait, maybe without the turn; and to take note of what was written meanwhile. */
long listener_wait(struct tblock *t, uint64_t nr, const uint64_t a[6]);
void listener_done(struct thread *t);

/* ioctl() of who listens. */
bool listener_is_request(uint64_t request);
long listener_ioctl(const uint64_t a[6]);

/* Writes to the memory of a process that waits for an answer; *ret: 0 or -EIO. False: it does not wait. */
bool listener_writes(int tgid, gaddr addr, const void *bytes, uint32_t len, long *ret);

#endif
