/* Processes and threads of the program. */
#ifndef REPRISE_THREAD_H
#define REPRISE_THREAD_H

#include "engine/engine.h"
#include "inproc/lock.h"
#include "sphere/limits.h"
#include "sphere/seccomp.h"

#define NSIG_MAX 64
#define PENDING_MAX 32
#define OUT_FDS 1024

struct ksigaction { /* the kernel's struct sigaction */
    uint64_t handler;
    uint64_t flags;
    uint64_t restorer;
    uint64_t mask;
};

/* What execve resets and fork copies; a vfork child has one of its own in the same address space. */
struct process {
    struct lock lock;
    struct ksigaction action[NSIG_MAX + 1]; /* as the program set it */
    char exe_path[4096];
    int pid;
    struct limits limits;
    bool catches_all;   /* it is traced: every signal comes to us */
    bool cleared;       /* it has begun without handlers, and the kernel does not know yet */
    bool shares_memory; /* of a thread with shares_memory, which did not get its parent's handlers (CLONE_SIGHAND) */
};

/* A table of descriptors: most threads of a process share one, and processes may. */
struct files {
    int rt_fd; /* the runtime's own file; out of the program's reach. Recording: the channel, the socket to the controller and
                  its /proc are the next three numbers */
    uint64_t out_fds[3][OUT_FDS /
                        64]; /* recording: [1] and [2] are sets of descriptors that are the sphere's output and error */
};

struct siginfo_raw { /* siginfo_t, 128 bytes */
    int32_t signo, err, code, pad;
    uint64_t w[14];
};

struct pending_signal {
    struct siginfo_raw info;
    bool is_fault; /* raised by the instruction at the thread's pc: cannot be blocked or ignored */
};

struct altstack { /* stack_t */
    uint64_t sp;
    int32_t flags, pad;
    uint64_t size;
};

/* Why the trap flag is set in the cache. */
enum stepping {
    STEP_NOT,
    STEP_OUT,          /* to the next instruction boundary, with signals queued */
    STEP_FOR_GUEST,    /* to the next instruction boundary, because the program has its trap flag set */
    STEP_FOR_DEBUGGER, /* the same, for the debugger */
};

/* A fault as the kernel reports it to a program. */
struct guest_fault {
    int signo, code;
    gaddr addr;
    uint64_t trapno, err;
};

/* A thread that may run on one processor only until it runs again (recorder/processor.h). */
struct processors {
    uint32_t bytes; /* of `allowed`; 0: nobody has confined it */
    uint32_t here;
    uint64_t allowed[16]; /* the set that it had */
};

/* What an R-thread waits for that does not have the turn. */
enum awaits {
    AWAITS_TURN,    /* goes on where it lost its turn, or begins, with TURN */
    AWAITS_CALL,    /* is in a system call: goes on with what the log says of it */
    AWAITS_TRACER,  /* is stopped for its tracer: goes on with what the log says that did */
    AWAITS_NOTHING, /* has ended */
};

/* What the debugger's agent knows of an R-thread (debug.c); `op` and `name` also while recording, for checkpoints. */
struct debugged {
    gaddr pc; /* where it was seen last */
    uint64_t rsp, ticks;
    uint64_t counted;            /* ticks that are in the sum already */
    uint64_t op_event, op_ticks; /* where it last took events... */
    gaddr op_pc;                 /* ... and the instruction that needed them */
    bool has_op, in_call;
    uint64_t call, returned; /* the system call it made last, and the event that it went on behind it with; 0: none */
    bool once;               /* one instruction, then as the run says */
    char name[16];           /* that the program gave it; "": none */
};

/* A call by int $0x80 or the vsyscall page: while it is made, the registers are those of the same call by `syscall`. */
struct legacy_call {
    bool under_way;
    uint32_t nr;      /* as the program gave it; int $0x80 */
    uint64_t gpr[16]; /* the program's own */
    gaddr pc;         /* where the call is */
    gaddr next;       /* where it goes on */
    uint64_t pops;    /* bytes that it takes from the stack */
};

/* A sleep that the runtime has interrupted, behind its call at `next` with `sp`; no handler has run since. */
struct sleep_rest {
    gaddr next; /* 0: there is none */
    uint64_t sp;
    int64_t left[2]; /* timespec */
};

struct thread {
    struct tblock *tb;
    struct process *process;
    struct files *files;
    int tid, tgid; /* 0 until the thread can take signals */
    bool in_use;
    bool ended;   /* recording and replay: has ended for the program, though the slot may still be in use */
    int left_fd;  /* not 0: readable when the child that was forked with CLONE_VFORK has left its memory (sys/proc.c) */
    bool vforked; /* its parent waits for it and gives the slot back */
    bool
        shares_memory; /* of a process that is not the one whose memory it is: a vfork child, clone with CLONE_VM alone */
    bool in_call;      /* a system call is under way, with the arguments that are in tb->gpr */
    enum stepping stepping;
    uint64_t step_from;  /* host address where the step under way began */
    gaddr step_pc;       /* the instruction that it is a part of */
    bool step_is_pushf;  /* the step under way pushes the flags, with a trap flag that is ours */
    uint64_t sigmask;    /* as the program sees it */
    uint64_t saved_mask; /* sigsuspend & co: mask to restore after delivery */
    bool restore_mask;
    bool held_came; /* a signal that is held (signals_held.c) has come: it may have interrupted a call */
    struct altstack altstack;
    bool reads_imply_exec; /* personality(READ_IMPLIES_EXEC) */
    int n_pending;
    struct pending_signal pending[PENDING_MAX];
    uint64_t fault_err, fault_trapno, fault_cr2; /* of the pending fault, as the kernel reported them */
    uint64_t shown_err, shown_trapno,
        shown_cr2;                 /* of the last one that the program saw: the kernel shows them ever after */
    struct guest_fault copy_fault; /* why guest_copy() failed last */
    uint8_t *sigstack;             /* the runtime's own alternate stack */
    struct seccomp seccomp;        /* the program's own filters */
    bool tsc_faults;               /* PR_SET_TSC; recording: replay finds the faults in the log */
    struct legacy_call legacy;
    struct sleep_rest sleep_rest; /* sys/sleep.c */
    uint32_t number;              /* R-thread number within the stream; recording and replay */
    gaddr clear_tid, robust_head; /* set_tid_address, set_robust_list; recording and replay */
    uint32_t turn;                /* futex: counted up when the thread is given the turn */
    struct thread *turn_next;     /* in the queue for the turn */
    bool looks;                   /* there: is awake, or wakes up by itself before long */
    struct processors confined;   /* it was given the turn on a certain processor (recorder/processor.h) */
    gaddr awaited_pi;             /* recording: the word that it has waited for (pi_futex.h) */
    gaddr stack_start;            /* where the call under way has made the process's stack begin */
    gaddr marked_word;            /* recording: the call under way has marked a robust mutex whose owner was killed */
    bool wrote_elsewhere;         /* the call under way has written to another process's memory, not to its own */
    uint32_t spins;               /* pauses that it has executed with the turn, while others waited for that */
    bool turn_lent;               /* in a call during which the turn may be stolen */
    bool access_will_do;          /* the page that it waits for may as well become nobody's (shared_values.h) */
    void (*service)(struct thread *t); /* a thread of the runtime's own: what it does, forever */
    struct scheduled
        *scheduled; /* replay: all of the thread that a kernel thread would have. Recording: the same, when it may
                                    lose the turn */
    enum awaits awaits;
    bool parked; /* recording: all of that is kept; otherwise vector and x87 registers are still where they were */
    bool
        owes; /* there are checkpoints without its vector and x87 registers: EXTENDED is to follow. Replay: it was restored
                    from one */
    struct debugged debugged;
    struct tracee *tracee; /* somebody of the sphere traces it (traced.h) */
    bool kicked;           /* somebody may have begun to */
    struct trace_follow {
        int tracer; /* 0: nobody follows */
        struct tracee *parent;
        int event; /* PTRACE_EVENT_* for the parent */
        uint32_t options;
        bool seized;
        bool shows_end;     /* the parent stops again when the child has left its memory */
    } follow;               /* a child that is made: its tracer */
    uint32_t not_left;      /* futex: a vfork child still has its parent's memory (traced.h) */
    bool tells_leave;       /* not_left is kept */
    uint64_t trace_message; /* what PTRACE_GETEVENTMSG says of `trace_event`, which the tracer has yet to be told */
    int trace_event;
    bool traced_by_outsider;     /* PTRACE_TRACEME with a parent that is not of the sphere */
    bool trace_step;             /* the tracer wants one instruction: the trap flag is its own */
    bool stopped_inside;         /* recording: a stop that can only end where it began: for a fault, during vfork() */
    int trace_signal;            /* what the tracer wants delivered */
    struct thread *vfork_parent; /* while its parent waits for it */
    struct thread *next;
};

/* A thread block with stacks and slots filled in; reuses those of threads that ended. NULL: no memory. */
struct thread *thread_new(struct process *p, struct files *files);
/* gs, alternate stack: to be called by the thread itself. */
void thread_adopt(struct thread *t);
/* Ends the calling thread: gives its slot back and exits with `status`, never returning. */
void thread_exit(struct thread *t, int status) __attribute__((noreturn));
/* Room for the process and the table of a vfork child, which live as long as its thread. */
struct process *thread_own_process(struct thread *t);
struct files *thread_own_files(struct thread *t);
/* prctl(PR_SET_NAME, name) */
void thread_take_name(struct thread *t, gaddr name);
/* personality() has succeeded. */
void thread_set_personality(struct thread *t, uint64_t personality);
/* What the program gets that asks for `prot`. */
int thread_prot(const struct thread *t, uint64_t prot);
/* Around fork: nobody is in the middle of making a thread. Then in the child: only `self` is left. */
void threads_hold(void);
void threads_release(void);
void threads_after_fork(struct thread *self);
uint64_t threads_oldest_epoch(void);
/* Head of the list of all slots, linked by `next`; those that are not in_use are nobody's. */
struct thread *threads_first(void);

static inline struct thread *thread_self(void) { return tblock_self()->thread; }

#endif
