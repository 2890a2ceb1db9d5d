/* A thread's registers as ptrace shows them. */
#ifndef REPRISE_TRACE_REGS_H
#define REPRISE_TRACE_REGS_H

#include "log/events.h"
#include "sphere/trace_table.h"

#define ORIG_RAX_NONE UINT64_MAX

void trace_regs_show(const struct thread *t, uint64_t orig_rax, struct user_regs *r);
/* What a tracer has made of them; fs and gs bases, too. */
void trace_regs_take(struct thread *t, const struct user_regs *r);

/* The same for the log. */
struct ev_regs trace_regs_event(const struct thread *t, uint64_t extended);
void trace_regs_from_event(struct thread *t, const struct ev_regs *v);

#endif
