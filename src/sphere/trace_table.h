/* Tracing inside a sphere: ptrace without the kernel's. Tracer and tracee are both under Reprise, and the kernel knows only the
 * runtime's registers; so a tracee stops itself, at a safepoint, and lays what its tracer may want to see into memory that all
 * processes of the sphere share. docs/architecture.md, "Tracing inside".
 *
 * The memory: a memfd of its own in standard execution, the end of the channel's while recording; sparse. A process maps it
 * when it first makes a child or is traced. At replay there is none: what tracers did is in the log. */
#ifndef REPRISE_TRACE_TABLE_H
#define REPRISE_TRACE_TABLE_H

#include "sphere/thread.h"

#define TRACE_TRACEES 512
#define TRACE_WAITERS 64
#define TRACE_MEMBERS 8192 /* a power of two */
#define TRACE_EXTENDED 16384
#define TRACE_LETTER 4096

enum tracee_state {
    TRACEE_FREE,
    TRACEE_BUSY, /* being filled in */
    TRACEE_RUNS,
    TRACEE_STOPPED, /* everything below is valid and the tracer's */
    TRACEE_ENDED,   /* the tracer has yet to be told */
};

/* ATTACH or SIGSTOP; INTERRUPT; another thread of its process was stopped by a signal */
enum trace_want { TRACE_WANT_SIGSTOP = 1, TRACE_WANT_TRAP = 2, TRACE_WANT_GROUP_STOP = 4 };

enum trace_resume {
    RESUME_CONT,
    RESUME_SYSCALL,
    RESUME_STEP,
    RESUME_SYSEMU,
    RESUME_SYSEMU_STEP,
    RESUME_LISTEN, /* stays stopped, for the kernel */
    RESUME_DETACH
};

/* What is asked of a process, for its memory: a thread of it that is stopped answers, or one that is brought to a safepoint. */
/* WRITE: as the process itself could; POKE: as a debugger does; MAPPING: which mapping is the one of number addr; CHANGES: somebody
 * changes a file (device and inode). */
enum letter_kind {
    LETTER_NONE,
    LETTER_BUSY,
    LETTER_PEEK,
    LETTER_MAPPING,
    LETTER_WRITE,
    LETTER_POKE,
    LETTER_CHANGES,
    LETTER_ANSWERED
};

struct trace_letter {
    uint32_t kind; /* futex; enum letter_kind */
    uint32_t len;
    uint64_t addr;
    uint32_t done; /* bytes that could be copied */
    uint32_t reserved;
    uint8_t bytes[TRACE_LETTER];
};

struct user_regs { /* the kernel's struct user_regs_struct */
    uint64_t r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi, orig_rax, rip, cs, eflags, rsp,
        ss, fs_base, gs_base, ds, es, fs, gs;
};
_Static_assert(sizeof(struct user_regs) == 216, "as the kernel has it");

struct syscall_info { /* struct ptrace_syscall_info: 0 none, 1 entry, 2 exit, 3 seccomp */
    uint8_t op, pad[3];
    uint32_t arch;
    uint64_t pc, sp;
    uint64_t v[8]; /* entry, seccomp: number, six arguments, message; exit: result, whether it is an error */
};

struct tracee {
    uint32_t state;
    uint32_t bell; /* futex: counted up when it is let go or asked for something */
    int32_t tid, tgid;
    int32_t tracer; /* process */
    int32_t born;   /* the child that it makes knows its tracer, and may have ended by now */
    uint32_t wants; /* enum trace_want */
    uint32_t options;
    bool seized;
    bool visits;   /* nobody traces it: another process only wants its memory */
    bool reported; /* STOPPED: the tracer has been told */
    bool has_siginfo, regs_changed, extended_changed, mask_changed;
    bool noticed;                   /* the tracee knows that it is one */
    bool listens;                   /* the kernel has stopped it, after PTRACE_LISTEN */
    bool was_interrupted;           /* it is continued only because the tracer wants it to stop for it again */
    int32_t stop_code, stop_sender; /* TRACE_WANT_SIGSTOP: its siginfo */
    uint8_t group_stop;             /* TRACE_WANT_GROUP_STOP: the signal */
    uint8_t how;                    /* enum trace_resume: how it was let go last */
    int32_t status;                 /* STOPPED, ENDED: as wait() gives it */
    int32_t signal;                 /* to be delivered when it goes on */
    uint64_t message;               /* PTRACE_GETEVENTMSG */
    uint64_t sigmask;
    uint64_t debug_regs[8];
    uint8_t touches;     /* those of them that the instruction which runs will touch (trace_watch.h), */
    uint8_t may_store;   /* or may store to: it will have changed */
    uint64_t watched[4]; /* what there was before */
    struct siginfo_raw info;
    struct syscall_info call;
    struct user_regs regs;
    struct trace_letter letter;
    uint8_t extended[TRACE_EXTENDED] __attribute__((aligned(64))); /* as xsave lays it out */
};

struct trace_waiter { /* somebody in wait4 or waitid */
    int32_t tid;      /* 0: free */
    int32_t tgid;
    uint32_t bell; /* futex */
    uint32_t reserved;
};

#define TRACE_ASKING 64
#define TRACE_ASKED 256
#define TRACE_WRITTEN 32

enum { ASKING_FREE, ASKING_FILLED, ASKING_BUSY }; /* trace_asking.state */

/* A process with a thread that waits for its listener's answer (listener.h): who listens may write to its memory meanwhile. */
struct trace_asking {
    uint32_t state;
    int32_t tgid, tid;
    uint32_t n; /* written so far: */
    struct {
        uint64_t addr, len;
    } written[TRACE_WRITTEN];
};

#define TRACE_KICKS 64

struct trace_table {
    uint32_t n_tracees;
    uint32_t n_asked;
    uint32_t n_kicks;
    int32_t kicks[TRACE_KICKS];  /* threads that were kicked last */
    uint64_t asked[TRACE_ASKED]; /* the last questions of processes of the sphere that somebody has received */
    struct trace_asking asking[TRACE_ASKING];
    struct trace_waiter waiters[TRACE_WAITERS];
    int32_t members[TRACE_MEMBERS]; /* processes of the sphere that have made, or are, children; found by hash */
    struct tracee tracees[TRACE_TRACEES];
};

/* The table, mapped if need be; NULL: there is none. */
struct trace_table *trace_table(void);
/* A process that its recording has left behind: the table is where its fellows have it, if anywhere. */
void trace_table_of_channel(bool has_one);
/* Only if it is mapped already. */
struct trace_table *trace_table_mapped(void);

/* A new descriptor through which runtimes of a standard execution find the table, or -errno. */
long trace_table_make(void);

bool trace_is_member(int tgid);
void trace_add_member(int tgid);
void trace_remove_member(int tgid);

struct tracee *trace_find(int tid);
/* Reads or writes memory of a process of the sphere, at most TRACE_LETTER bytes, through e or whatever thread of it answers.
 * 0, -EIO: there is no such memory, -ESRCH. */
long trace_ask(struct tracee *e, enum letter_kind kind, gaddr addr, void *bytes, uint32_t len);
long trace_write(int tgid, enum letter_kind kind, gaddr addr, void *bytes, uint32_t len);
/* A thread of the process that is stopped for its tracer, and answers at once; NULL: none. */
struct tracee *trace_stopped(int tgid);
/* A free entry for tid, not yet visible: trace_publish() makes it so. NULL: there is one for it, or no room. */
struct tracee *trace_claim(int tid, int tgid, int tracer);
void trace_publish(struct tracee *e);
void trace_free(struct tracee *e);
/* The i-th entry that `tracer` has to do with; NULL: no more. */
struct tracee *trace_next(uint32_t *i, int tracer);

/* Has a thread of any process of the sphere look into the table, from wherever it is. */
void trace_kick(int tgid, int tid);
/* Whether somebody has, since this was asked last. */
bool trace_was_kicked(int tid);
/* Whoever waits in `tracer` looks again. */
void trace_ring(int tracer);

/* Around waiting for another process, which may need pages of ours first: the turn is anybody's. Calls that may block have lent it
 * already. */
bool trace_lend_turn(void);
void trace_turn_back(bool was_lent);

void trace_futex_wait(uint32_t *word, uint32_t seen, long milliseconds);
void trace_futex_wake(uint32_t *word);

#endif
