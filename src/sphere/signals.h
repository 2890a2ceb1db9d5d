/* Signals: the kernel's handlers are ours; the program's frames are built by us, at safepoints. */
#ifndef REPRISE_SIGNALS_H
#define REPRISE_SIGNALS_H

#include "sphere/thread.h"

/* Signals that an instruction can raise. The kernel never blocks them for us; the program's own mask is kept apart. */
#define SIG_BIT(s) (1ull << ((s)-1))
#define SIGNALS_SYNC (SIG_BIT(4) | SIG_BIT(5) | SIG_BIT(7) | SIG_BIT(8) | SIG_BIT(11))

/* ignored: the signals that the program before execve ignored; NULL: the kernel knows. */
void signals_start(struct process *p, uint64_t inherited_mask, const uint64_t *ignored);
uint64_t signals_ignored(const struct process *p);
/* Sets the kernel's mask from t->sigmask. */
void signals_apply_mask(struct thread *t);
void signals_block_all(void);
/* In front of exec: what has come and was not delivered goes back to the kernel, which keeps it, and all that comes from now
 * on, for what the process becomes. Until signals_apply_mask(). */
void signals_give_back(struct thread *t);

/* engine_host.safepoint: delivers what is pending. */
void signals_safepoint(struct tblock *tb);
/* Delivers s: builds the handler's frame, or ends the process. flags: EVF_* of the event that it is. True: the program's registers
 * now point at a handler. */
bool signals_deliver(struct thread *t, struct pending_signal *s, uint8_t flags);
/* One that a tracer has chosen in the place of another, behind which it comes. */
void signals_deliver_chosen(struct thread *t, struct pending_signal *s);
/* The same for everything that waits; modes that defer signals. */
void signals_deliver_deferred(struct thread *t, uint8_t flags);
/* The mask of a wait that is over, if no handler was called. */
void signals_end_wait(struct thread *t);
/* A process that is traced: all signals come to us, whatever the program does with them. And back, after a fork. */
void signals_catch_all(struct process *p);
void signals_catch_own(struct process *p);
/* What CLONE_CLEAR_SIGHAND does to a new process; the kernel learns of it by signals_catch_own(). */
void signals_clear_handlers(struct process *p);
/* Whether a call that waits is made again behind what is pending. */
bool signals_restart(const struct thread *t);

/* ---- signals_held.c ---- */

/* Sent, and kept here while the program blocks them: the kernel does not block them for us. */
bool signals_is_held(const struct thread *t, const struct pending_signal *s);
uint64_t signals_held(const struct thread *t);
/* Those that were sent to the thread, or to its process. */
uint64_t signals_held_for(const struct thread *t, bool thread);
/* Those in `set` are ignored from now on. */
void signals_drop_held(struct thread *t, uint64_t set);
/* gate_syscall() for calls that may see them: the kernel has them back. */
long signals_issue(long nr, const uint64_t a[6]);
/* The same for calls that wait with another mask. */
long signals_issue_waiting(long nr, const uint64_t a[6]);
/* The program has a signalfd for some of them: all calls may. */
extern bool signals_watched;
/* The mask that the kernel gets in place of `set`, by a call that waits with it, made so. */
uint64_t signals_to_wait_with(const struct thread *t, uint64_t set);

bool signals_is_waiting(const struct thread *t);
/* Whether one of those will end the process. */
bool signals_will_kill(const struct thread *t);
/* Queues a signal that the program cannot put off, as a system call does that is refused. */
void signals_raise_fault(struct tblock *tb, int signo, int code, gaddr addr);

#define SI_KERNEL_ 0x80
#define RFLAGS_TF 0x100ull
#define RFLAGS_ODD \
    0x244000ull /* AC, ID, NT: not set in the runtime (enter_exit.S, save_all); its signal handlers clear AC alone */
#define TRAP_STACK 12
#define TRAP_PROTECTION 13
#define TRAP_PAGE_FAULT 14
#define PF_PRESENT 1
#define PF_WRITE 2
#define PF_USER 4
#define PF_FETCH 16

/* Delivers a fault of the instruction at t->pc that the runtime found by itself. */
void signals_raise(struct tblock *tb, const struct guest_fault *f);
/* The same for the access that guest_read() or guest_write() has just failed to make. */
void signals_raise_copy_fault(struct tblock *tb);
/* engine_host.step_trap */
void signals_step_trap(struct tblock *tb);

long signals_sigaction(struct tblock *t, uint64_t a[6]);
long signals_sigprocmask(struct tblock *t, uint64_t a[6]);
long signals_sigaltstack(struct tblock *t, uint64_t a[6]);
long signals_sigreturn(struct tblock *t, uint64_t a[6]);
/* Calls that change the mask while they wait: argument index of the mask pointer. */
long signals_with_mask(struct tblock *t, uint64_t nr, uint64_t a[6], int mask_arg);
/* The call is back from waiting under `mask`: if a signal ended it, the handler runs under that mask, too. */
void signals_waited(struct thread *t, uint64_t mask, long ret);
void signals_begin_wait(struct thread *t, uint64_t mask);

/* Whether a signal that this thread sends to its own process ends it: the kernel would kill all threads before the call
 * returns, but knows of a handler of ours. */
bool signals_ends(const struct thread *t, int signo);
/* The first process of a pid namespace: what would kill by default does nothing, unless it is the process's own fault. */
static inline bool signals_spare(const struct thread *t) { return t->process->pid == 1; }
/* Whether its default action is a core. */
bool signals_dump_core(int signo);
/* Dies of a signal as the program would have: signals_die.c */
void signals_die(struct thread *t, const struct siginfo_raw *info) __attribute__((noreturn));

/* For the debugger's watchpoints, in the handler of a fault: the instruction is tried again and run to its end; or the cache is
 * left, with the state in the thread block; what the registers are. */
struct ucontext_raw;
struct fault_regs;
void signals_step_on(struct thread *t, struct ucontext_raw *uc);
void signals_leave_to_enter(struct ucontext_raw *uc);
void signals_regs(struct fault_regs *r, const struct ucontext_raw *uc);

#endif
