/* Code watch: writable pages that hold translated code.
 * Such a page is write-protected behind the program's back; a write flushes its translations and makes it writable again.
 * Pages that flip often, and pages that can change without a fault (shared memory with another view), are not protected:
 * their blocks check their own bytes at entry ("checked").
 * Caller holds cache_lock, unless said otherwise. */
#ifndef REPRISE_CODE_WATCH_H
#define REPRISE_CODE_WATCH_H

#include "engine/engine.h"

/* engine_host.code_at */
bool code_watch_code_at(gaddr pc, struct code_range *out);

/* engine_host.worn */
void code_watch_worn(gaddr pc);

/* The mapping of [start, end) changes or goes away: drop translations and protections. */
void code_watch_forget(gaddr start, gaddr end);

/* A write to addr faulted, by the instruction at guest address pc. True: it was our protection and is lifted now.
 * Takes cache_lock. */
bool code_watch_write_fault(gaddr addr, gaddr pc);

/* The kernel is about to write [start, start + len): lift protections there. Takes cache_lock if there is anything to do. */
void code_watch_before_kernel_write(gaddr start, size_t len);
void code_watch_before_any_kernel_write(void);

/* Whether the page is protected now. */
bool code_watch_is_protected(gaddr page);
extern uint64_t code_watch_protected; /* pages protected now */

#endif
