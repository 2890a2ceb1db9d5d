/* The controller's side of the channel: making it, its futexes, processes that use it. */
#ifndef REPRISE_CHANNEL_HOST_H
#define REPRISE_CHANNEL_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "log/channel.h"

/* Makes the shared memory; its descriptor is close-on-exec. NULL: the user was told why. */
struct channel *channel_make(int *fd, uint32_t flags);

static inline uint8_t *ring_data(struct channel *c, uint32_t i) { return (uint8_t *)c + channel_ring_offset(i); }

#define CHANNEL_GET(field) __atomic_load_n(&(field), __ATOMIC_ACQUIRE)
#define CHANNEL_SET(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELEASE)

/* Which rings may have been claimed so far: those below `high`; the others need no look. A runtime claims the first ring that is
 * free from next_ring on, which it counts up before. */
struct ring_claims {
    uint32_t high, known; /* next_ring as last seen or set */
};
uint32_t claims_reach(struct ring_claims *, struct channel *);
/* The next claim had better begin at i. */
void claims_begin_at(struct ring_claims *, struct channel *, uint32_t i);

void futex_wake_all(uint32_t *futex);
/* Until it is woken, or is not `seen` any more, or `us` have passed. */
void futex_wait_us(uint32_t *futex, uint32_t seen, unsigned us);
/* Counts up and wakes. Safe in a signal handler. */
void futex_ring(uint32_t *futex);

/* The ring starts anew: empty, nobody's. `state` is set last. */
void ring_reset(struct ring *, uint64_t stream, enum ring_state state);

/* Monotonic clock. */
uint64_t now_ms(void);

/* The resource limits that the controller itself raises; a program that is recorded gets them back. What is replayed needs
 * none: the log knows what they led to. */
void limits_raise(void);
void limits_restore(void);

/* Duplicates fd to where programs hardly look, to be inherited: above their limit if that can be. Between the two calls above.
 * -1: cannot be. */
int inherit_high(int fd);

#endif
