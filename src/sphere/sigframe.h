/* What the kernel lays on the stack for a signal handler on x86-64. */
#ifndef REPRISE_SIGFRAME_H
#define REPRISE_SIGFRAME_H

#include "sphere/thread.h"

struct mcontext {
    uint64_t r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags;
    uint16_t cs, gs, fs, ss;
    uint64_t err, trapno, oldmask, cr2;
    uint64_t fpstate;
    uint64_t reserved[8];
};

struct ucontext_raw {
    uint64_t flags, link;
    struct altstack stack;
    struct mcontext mc;
    uint64_t sigmask;
};

struct sigframe {
    uint64_t pretcode;
    struct ucontext_raw uc;
    struct siginfo_raw info;
};

_Static_assert(sizeof(struct mcontext) == 256, "mcontext");
_Static_assert(sizeof(struct siginfo_raw) == 128, "siginfo");

#define SIG_BIT_KILL (1ull << 8)
#define SIG_BIT_STOP (1ull << 18)

#define UC_FP_XSTATE 1
#define UC_SIGCONTEXT_SS 2
#define UC_STRICT_RESTORE_SS 4

/* Builds a frame on the program's stack and points its registers at the handler. False: the stack cannot be written. */
bool sigframe_push(struct thread *t, const struct siginfo_raw *info, const struct ksigaction *sa);
/* Undoes it from the frame that the program's stack pointer names (rt_sigreturn). */
bool sigframe_pop(struct thread *t);

/* Leaves the runtime for good: the kernel goes on with the registers of the program, at its pc, with this mask. A signal that is pending
 * and not in it finds the process as it would natively. */
_Noreturn void sigframe_leave(struct thread *t, uint64_t mask);

void sigframe_start(void);
/* Frames have the state of AMX if the kernel lets this process use it: asked at the start and when it has been given leave. */
void sigframe_ask_permission(void);
bool sigframe_has_tiles(void);
/* Whether the processor takes the state that begins so; with its header, or without. */
bool sigframe_is_loadable(const uint8_t *area, bool has_header);
void sigframe_request_tiles(void);

/* All vector and x87 registers, to and from an area of this size, aligned to 64. */
size_t sigframe_extended_size(void);
uint64_t sigframe_extended_mask(void); /* XCR0; 0: the format of fxsave */
void sigframe_save_extended(uint8_t *area);
void sigframe_load_extended(const uint8_t *area);
/* The same for an area that somebody else has filled in: nothing in it can fault. */
void sigframe_set_extended(const uint8_t *area);

#endif
