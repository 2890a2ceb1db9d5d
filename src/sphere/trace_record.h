/* What tracers of the sphere do, in the stream of the tracee. */
#ifndef REPRISE_TRACE_RECORD_H
#define REPRISE_TRACE_RECORD_H

#include "sphere/thread.h"

/* mode.trace_* while recording. */
void trace_record_stop(struct thread *t, uint8_t flags);
void trace_record_turn(struct thread *t, bool take);
void trace_record_wrote(struct thread *t, gaddr addr, size_t len, uint8_t flags);
void trace_record_go(struct thread *t, bool changed, uint8_t flags, uint16_t signal);

#endif
