/* Signals: the kernel's handlers are ours; the program's frames are built by us, at safepoints. */
#ifndef REPRISE_SIGNALS_H
#define REPRISE_SIGNALS_H

#include "sphere/thread.h"

/* Signals that an instruction can raise. The kernel never blocks them for us; the program's own mask is kept apart. */
#define SIG_BIT(s) (1ull << ((s)-1))
#define SIGNALS_SYNC (SIG_BIT(4) | SIG_BIT(5) | SIG_BIT(7) | SIG_BIT(8) | SIG_BIT(11))

void signals_start(struct process *p, uint64_t inherited_mask);
/* Sets the kernel's mask from t->sigmask. */
void signals_apply_mask(struct thread *t);
void signals_block_all(void);

/* engine_host.safepoint: delivers what is pending. */
void signals_safepoint(struct tblock *tb);
/* A fault that the runtime found by itself at t->pc. */
void signals_raise_fault(struct tblock *tb, int signo, int code, gaddr addr);

long signals_sigaction(struct tblock *t, uint64_t a[6]);
long signals_sigprocmask(struct tblock *t, uint64_t a[6]);
long signals_sigaltstack(struct tblock *t, uint64_t a[6]);
long signals_sigreturn(struct tblock *t, uint64_t a[6]);
/* Calls that change the mask while they wait: argument index of the mask pointer. */
long signals_with_mask(struct tblock *t, uint64_t a[6], int mask_arg);

/* Dies of a signal as the program would have. */
void signals_die(struct thread *t, const struct siginfo_raw *info) __attribute__((noreturn));

#endif
