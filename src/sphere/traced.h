/* The tracee's side of ptrace: an R-thread that is traced stops itself and waits for its tracer's word. */
#ifndef REPRISE_TRACED_H
#define REPRISE_TRACED_H

#include "sphere/trace_table.h"

/* Whether somebody traces t, or may have begun to. */
static inline bool traced_may(const struct thread *t) { return unlikely(t->tracee != NULL) || unlikely(t->kicked); }

/* At a safepoint that is no call: stops if the tracer wants it. flags: EVF_* of where it is. */
void traced_safepoint(struct thread *t, uint8_t flags);

/* At the gate, before anything is done for the call behind which `next` is. False: the program goes on at tb->pc instead; true:
 * the call is to be made, whose number and arguments may have changed. */
bool traced_gate(struct tblock *tb, gaddr next);
/* The program's filters leave a call to its tracer (SECCOMP_RET_TRACE): whether that wants to be asked; asking it. False: the call is
 * not made, and the registers are as they shall be. */
bool traced_is_asked(const struct thread *t);
bool traced_at_filter(struct tblock *tb, uint16_t message);
/* The call is over and its result is in the registers. */
void traced_after_call(struct thread *t, uint64_t nr);

/* It was not made, and will be tried again, if the tracer leaves the registers as they are. True: it was asked. */
bool traced_aborted(struct thread *t, uint64_t nr);

/* A signal is about to be delivered. False: it is not. s and flags are changed to what the tracer says. */
bool traced_signal(struct thread *t, struct pending_signal *s, uint8_t *flags);

/* A signal stops t's process: its tracer is told of that, too, and may leave it so. False: t is not traced. */
bool traced_group_stop(struct thread *t, int signo);

/* The program's registers point at a handler now. */
void traced_in_handler(struct thread *t);

/* One instruction for the tracer, by the program's trap flag; and back. Replay, too. */
void traced_step(struct thread *t);
void traced_step_over(struct thread *t);

/* A call that waited has returned -EINTR: whether only because somebody wants to trace us, or for a signal that the program blocks, so
 * that it is to be made again. The signal mask is then what it was before. */
bool traced_undoes(struct thread *t);

/* t waits for another process, without the turn and with no event of its call in the log: that one may wait for t's memory, too. */
void traced_answer(struct thread *t);

/* Children: who will trace the one that t is about to make, with flags of clone and its signal in the low byte; the child, once it
 * runs; its parent, behind the call. */
struct trace_follow traced_follows(const struct thread *t, uint64_t flags);
void traced_born(struct thread *child, const struct trace_follow *f);
void traced_has_child(struct thread *t, const struct trace_follow *f, int tid);
/* A tracer is to be told of a vfork child at once, or when it has left its parent's memory: the runtime waits for that, and not the
 * kernel, which sets not_left to 0 then. */
bool traced_watches_vfork(const struct trace_follow *f);
void traced_vforked(struct thread *t, const struct trace_follow *f, int tid, uint32_t *not_left);

/* PTRACE_TRACEME. */
long traced_me(struct thread *t);
/* The first thing in a new program, if the old one was traced. */
void traced_after_exec(struct thread *t);

/* t ends, or all of its process does; status as wait() gives it. */
void traced_thread_ends(struct thread *t, int status);
void traced_process_ends(struct thread *t, int status);

#endif
