/* What the debugger's agent tells of the program where it stands, and what it changes there. Nothing outside of the program is
 * read or written. Each returns the answer to its request (log/worker.h). */
#ifndef REPRISE_DEBUG_STATE_H
#define REPRISE_DEBUG_STATE_H

#include "log/worker.h"
#include "sphere/thread.h"

/* R-thread by its number; NULL: there is none. */
struct thread *state_thread(uint32_t number);
/* Flags that are dead depend on how ticks were counted: they show as zero. */
uint64_t state_flags(const struct thread *t);
uint64_t state_registers(struct thread *t, uint32_t number, struct worker_registers *out, size_t cap);
uint64_t state_set_registers(struct thread *t, uint32_t number, const struct worker_registers *in);
uint64_t state_read(gaddr from, void *to, size_t n);
uint64_t state_write(gaddr to, const void *from, size_t n);
uint64_t state_threads(struct thread *t, struct worker_thread *out, size_t cap);
uint64_t state_regions(size_t first, struct worker_region *out, size_t cap);
uint64_t state_hash(void);
uint64_t state_shared(uint64_t object, uint64_t page, struct worker_shared *out, size_t cap);
/* Whether the page is shared, and at present another process's or nobody's. */
bool state_is_elsewhere(gaddr addr);

#endif
