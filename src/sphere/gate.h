/* The gate: every system call of the program goes through here, in every mode. */
#ifndef REPRISE_GATE_H
#define REPRISE_GATE_H

#include "sphere/thread.h"

#define GATE_ABORTED (-4096l) /* not issued: a signal has to be delivered first */

long gate_syscall(long nr, const uint64_t args[6]);
/* The same, whatever signals are held (signals_held.c). */
long gate_issue(long nr, const uint64_t args[6]);
extern char gate_check[], gate_insn[], gate_done[], gate_abort[];
long gate_ask(long nr, const uint64_t args[6]);
extern char ask_check[], ask_insn[], ask_done[];

/* Copies from or to guest memory; the number of bytes that could not be copied. */
long guest_copy(void *to, const void *from, size_t n);
extern char guest_copy_words[], guest_copy_insn[], guest_copy_end[];
/* shared.h: memory that other processes share has to be ours before it can be touched. */
extern gaddr shared_lowest, shared_highest; /* no tracked mapping has ever been outside of this */
static inline bool shared_may_be(gaddr start, size_t len) {
    return unlikely(start < shared_highest) && (start >= shared_lowest || len > shared_lowest - start);
}
void shared_hold(gaddr start, size_t len);
static inline bool guest_read(void *to, gaddr from, size_t n) {
    if (shared_may_be(from, n)) shared_hold(from, n);
    return guest_copy(to, (const void *)from, n) == 0;
}
static inline bool guest_write(gaddr to, const void *from, size_t n) {
    if (shared_may_be(to, n)) shared_hold(to, n);
    return guest_copy((void *)to, from, n) == 0;
}
/* A NUL-terminated string of at most cap - 1 bytes: its length, -EFAULT or -ENAMETOOLONG. */
long guest_read_string(char *to, gaddr from, size_t cap);

/* engine_host.syscall */
void gate_on_syscall(struct tblock *t);

/* Arguments of the call that t is in. */
void gate_args(const struct tblock *t, uint64_t a[6]);

/* The call was not made: the program makes it once more, after the signal. `next` is behind it. */
void gate_retry(struct tblock *t, gaddr next);

/* The call is over: what the processor leaves in registers. `flags` are those at the call. */
void gate_finish(struct tblock *t, gaddr next, uint64_t flags, long ret);

/* The program's call as it is, arguments from its registers. */
long gate_forward(struct tblock *t);

/* A special row of the system-call table. Returns the result for rax; GATE_ABORTED: issue again later. */
typedef long gate_fn(struct tblock *t, uint64_t a[6]);

#endif
