/* Writing events: what recording has in common wherever something is recorded. The caller has the turn. */
#ifndef REPRISE_EVENT_LOG_H
#define REPRISE_EVENT_LOG_H

#include "log/events.h"
#include "sphere/thread.h"

/* What an event says of the registers: a hash of the general ones and the pc. */
uint32_t event_regs(const struct tblock *tb);

/* An event with its head filled in and `payload` bytes behind it, not yet committed. */
struct event *event_new(struct thread *t, enum event_kind kind, uint16_t code, size_t payload);
/* MEMORY or OUT events for [addr, addr + len) of the program's memory. Returns how many; with `count` only counts. */
uint32_t event_memory(struct thread *t, enum event_kind kind, gaddr addr, uint64_t len, bool count);

#endif
