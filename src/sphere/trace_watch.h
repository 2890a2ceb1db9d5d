/* Debug registers of a tracee. The processor's would count for translated code and for the runtime itself; so a tracee whose
 * tracer has set some goes step by step, and looks each time where the next instruction will load and store. */
#ifndef REPRISE_TRACE_WATCH_H
#define REPRISE_TRACE_WATCH_H

#include "sphere/trace_table.h"

/* Whether any is switched on. */
static inline bool trace_watches(const struct tracee *e) { return e->debug_regs[7] & 0xff; }

/* PTRACE_POKEUSER of debug register i. */
long trace_watch_set(struct tracee *e, unsigned i, uint64_t word);

/* The tracee is about to run an instruction. */
void trace_watch_begin(struct thread *t);
/* As dr6 has them: what it has come to. ran: right behind that instruction, and no call. */
uint64_t trace_watch_hits(const struct thread *t, bool ran);

#endif
