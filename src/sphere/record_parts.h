/* The parts of recording, for each other: record.c (gate, other inputs, start), record_calls.c (system calls, what they wrote),
 * record_refusal.c (calls that cannot be recorded), record_tasks.c (threads, processes, exec). */
#ifndef REPRISE_RECORD_PARTS_H
#define REPRISE_RECORD_PARTS_H

#include "sphere/event_log.h"
#include "sphere/gate.h"
#include "sphere/record.h"

struct file_id;

/* ---- record_refusal.c ---- */

/* The error that the program gets instead of the call; 0: it may be issued. */
long record_refusal(uint64_t nr, const uint64_t a[6]);

/* ---- record.c ---- */

/* Ticks until t is to look up again. */
uint64_t record_budget(struct thread *t);

/* ---- record_calls.c ---- */

void record_calls_start(void);
/* The SYSCALL event; its outputs are to follow. */
struct ev_syscall *record_call(struct thread *t, uint64_t nr, const uint64_t a[6], long ret, uint8_t flags);
/* The event of a call that is done, with its outputs. */
void record_done(struct thread *t, uint64_t nr, const uint64_t a[6], long ret, uint8_t flags);
/* A call is to be made again, behind the signals that wait. */
void record_aborted(struct tblock *tb, uint64_t nr, gaddr next);
/* mode.ask */
long record_ask(struct tblock *tb, uint64_t nr, const uint64_t a[6]);
long record_issue(struct tblock *tb, uint64_t nr, uint64_t a[6]);
/* A call of t's is over: what happens before the program goes on. */
void record_behind(struct thread *t, uint64_t nr);
void record_ordinary(struct tblock *tb, uint64_t nr, uint64_t a[6], gaddr next, uint64_t flags);
/* mode.legacy, .keep_file */
long record_legacy(struct tblock *tb, uint32_t nr, const uint64_t a[6]);
void record_keep_file(int fd, const struct file_id *id, bool tracked);

/* ---- record_tasks.c ---- */

/* fork, vfork, clone, clone3 */
void record_clone(struct tblock *tb, uint64_t nr, uint64_t a[6], gaddr next, uint64_t flags);
void record_exit(struct tblock *tb, int status);
void record_exit_group(struct tblock *tb, int status);
/* SIGKILL leaves no time for last words, and others may share what such a process leaves behind. */
bool record_kills_itself(const struct thread *t, uint64_t nr, const uint64_t a[6]);
void record_kill_self(struct tblock *tb, uint64_t nr, const uint64_t a[6]);
/* Whether only its R-thread ends with a process: its memory is another's. */
bool record_is_sharer(const struct thread *t);
/* order_found_dead */
void record_found_dead(struct thread *dead, bool ran);
/* Notes which processes that share self's memory were killed. */
void record_bury_dead(struct thread *self);
/* mode.before_clone, .after_clone, .thread_begin, .thread_killed, .death, .before_exec, .exec_failed */
void record_before_clone(struct thread *t, struct thread *child);
void record_after_clone(struct thread *t, struct thread *child, long ret);
void record_thread_begin(struct thread *t);
void record_thread_killed(struct thread *t, int signo);
void record_death(struct thread *t, int signo);
size_t record_before_exec(struct thread *t, char *options, size_t cap);
void record_exec_failed(struct thread *t);

#endif
