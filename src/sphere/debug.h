/* The debugger's agent in a replaying process: stands still, runs and answers as a timeline asks (log/worker.h).
 *
 * It is called where the replay takes events, where a tick budget ends and, while an R-thread's tb->debug is set, whenever that
 * R-thread is about to enter the cache. At each of these places all state of the program is in thread blocks and memory, so the
 * process can stand still there, be looked at, and be copied by fork. Nothing of it is known to the program. */
#ifndef REPRISE_DEBUG_H
#define REPRISE_DEBUG_H

#include "log/worker.h"
#include "sphere/thread.h"

struct ucontext_raw;
struct siginfo_raw;

extern bool debug_is_on;       /* this process is a worker */
extern bool debug_is_diverted; /* and has left the recording */

/* Maps what is shared with the timeline; slot: which of the workers this is. */
void debug_start(int fd, uint32_t slot);
/* A program begins, by START or FORKED. True: it is the one to be debugged, from here on. */
bool debug_begin(struct thread *t);
/* The same, from a checkpoint on; ticks of all R-threads so far. */
void debug_begin_at(struct thread *t, uint64_t ticks);
/* Whether a fork is to be followed into the child with this stream. */
bool debug_follows(uint64_t stream);
bool debug_is_quiet(void);
/* A descriptor of the page log (log/page_log.h), which may have to be made first; negative: there is none. The worker may stand
 * still meanwhile. */
int debug_page_log(struct thread *t);

/* The R-thread is about to take events; the instruction that needs them has not been done. */
void debug_op(struct thread *t, bool is_call);
/* The call that it is in is given up for a signal: it will be made again. */
void debug_call_undone(struct thread *t);
/* A system call is about to be made; pc is behind the instruction. False: the run stops in front of it, where pc is now. */
bool debug_call_begins(struct thread *t);
/* The R-thread is no more; others go on. */
void debug_thread_ended(struct thread *t);
/* A signal is about to be delivered: at a tick point or the gate, right behind another event, or for a fault. */
enum signal_place { SIGNAL_ALONE, SIGNAL_BEHIND, SIGNAL_OF_FAULT };
/* False: it is not delivered, as the debugger has sent the program elsewhere. */
bool debug_signal(struct thread *t, const struct siginfo_raw *info, enum signal_place where);
/* Behind events: how far the R-thread may run of the n ticks that the log allows. */
uint64_t debug_budget(struct thread *t, uint64_t n);
/* A tick point where the log has nothing. */
void debug_tick(struct thread *t);
/* engine_host.debug */
void debug_enter(struct tblock *tb);
/* engine_host.at_break */
enum break_end debug_break(struct tblock *tb);
/* Code at pc cannot be executed. True: it is where a function that the debugger has called was to return to (gdb's place for that is on
 * the stack), which is a breakpoint to it, and no fault; one has stopped there. */
bool debug_break_without_code(struct tblock *tb);
/* engine_host.store */
bool debug_store(struct tblock *tb);
/* The runtime is about to store for the instruction at hand. False: the run stops in front of it. */
bool debug_writes(struct tblock *tb, gaddr at, size_t n);
/* A page fault. True: it was ours, and is dealt with. */
bool debug_fault(struct thread *t, const struct siginfo_raw *info, struct ucontext_raw *uc);
/* Mappings have changed. */
void debug_mapped(void);
/* There is nothing more to run. */
void debug_end(struct thread *t, enum worker_reason why, int status, const char *text) __attribute__((noreturn));
/* Diverted: answers a system call. */
long debug_call(struct tblock *tb, uint64_t nr, uint64_t a[6]);

#endif
