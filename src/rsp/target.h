/* What gdb asks of a replay: the one interface between the remote protocol (src/rsp) and the timeline (src/replay).
 * The protocol side knows nothing of recordings, the timeline nothing of packets. All functions are called from one thread. */
#ifndef REPRISE_RSP_TARGET_H
#define REPRISE_RSP_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A place in the execution of one process. Between two events exactly one R-thread runs, so places are ordered. */
#define POSITION_PROGRAM \
    40 /* bits of `event` that count: above them is the number of the program, by exec, from 0 on */
struct position {
    uint64_t event; /* events of the program before this place */
    uint64_t ticks; /* of the R-thread that runs there */
    uint64_t steps; /* instructions since that tick */
};

static inline int position_compare(struct position a, struct position b) {
    if (a.event != b.event) return a.event < b.event ? -1 : 1;
    if (a.ticks != b.ticks) return a.ticks < b.ticks ? -1 : 1;
    return a.steps < b.steps ? -1 : a.steps > b.steps;
}

enum stop_reason {
    STOP_STEP,        /* did what was asked */
    STOP_BREAKPOINT,  /* before the instruction at a breakpoint */
    STOP_WATCHPOINT,  /* `addr` was written (forward: behind the write; backward: before it) */
    STOP_SIGNAL,      /* the program is about to get `signo` */
    STOP_INTERRUPTED, /* interrupt() was called */
    STOP_BEGIN,       /* no more history backwards */
    STOP_END,         /* the end of the recording of this process */
    STOP_EXITED,      /* the process exited with `status` (forward) */
    STOP_KILLED,      /* the process was killed by `signo` */
    STOP_EXEC,        /* another program: the next one; backward: the one before, in front of the call that ends it */
    STOP_CALL,        /* in front of system call `call` */
    STOP_RETURN,      /* behind it */
    STOP_FORK,        /* the program has made process `child` */
    STOP_FAILED,      /* the replay diverged or broke: `text` */
};

struct stop {
    enum stop_reason reason;
    int thread; /* tid, as recorded, of the thread that stopped */
    int signo, status;
    int call, child;
    uint64_t addr;         /* STOP_WATCHPOINT */
    bool is_other_program; /* than the one before: the debugger must be told */
    char text[256];
};

/* WRITE: what is there changes. STORE: it is written, whether or not it changes. */
enum break_kind { BREAK_EXEC, BREAK_WRITE, BREAK_READ, BREAK_ACCESS, BREAK_STORE };

/* Of a breakpoint, as gdb compiles it (rsp/agent.h). */
struct condition {
    uint8_t *code;
    size_t n;
};

/* What else to stop for. */
#define CALLS_MAX 512
struct catches {
    uint64_t calls[CALLS_MAX / 64]; /* system calls, bit by number: in front of them, and behind */
    bool forks;                     /* where a process was made */
};

struct thread_facts {
    int tid;
    char name[32];
    char state[64]; /* "running", "in read(3, ...)" ... */
};

/* General registers in gdb's order for amd64, then segment bases, then the extended state as XSAVE has it (standard format). */
struct registers {
    uint64_t gpr[16]; /* rax rbx rcx rdx rsi rdi rbp rsp r8..r15 */
    uint64_t rip, eflags;
    uint64_t fs_base, gs_base, orig_rax;
    uint32_t cs, ss, ds, es, fs, gs;
    uint64_t xcr0; /* components that `xsave` holds */
    uint32_t xsave_size;
    uint8_t xsave[16384];
};

struct memory_region {
    uint64_t start, end;
    uint32_t prot; /* PROT_* */
    char name[256];
    uint64_t offset; /* in the file */
};

/* An instruction of the past, before it was executed. Registers by number: rax rcx rdx rbx rsp rbp rsi rdi r8.. */
struct past {
    struct position at;
    uint64_t pc, rflags, gpr[16];
};

struct code_range {
    uint64_t start, end; /* start == end: nowhere */
};

struct target;
struct target_ops {
    /* Where execution stands. */
    struct position (*where)(struct target *t);
    int (*current_thread)(struct target *t);
    /* Runs and stops, always somewhere else than before. step: one instruction of the current thread. */
    struct stop (*run)(struct target *t, bool backward, bool step);
    /* One instruction of a thread, current or not; the others do what they did meanwhile, and may be stopped for. Forwards it may
     * go on as long as that thread is in `within` and not at a breakpoint, and need not. */
    struct stop (*step_of)(struct target *t, bool backward, int tid, struct code_range within);
    /* Which signals to stop for: bit N - 1 for signal N. All, if never called. */
    void (*want_signals)(struct target *t, uint64_t set);
    void (*want_catches)(struct target *t, const struct catches *c);
    /* A place, by position; or the begin or the end. */
    struct stop (*seek)(struct target *t, struct position to);
    struct stop (*seek_begin)(struct target *t);
    struct stop (*seek_end)(struct target *t);
    /* From another thread or a signal handler: makes run or seek return soon. */
    void (*interrupt)(struct target *t);

    /* State at the present place. False: no such thread, or not readable. */
    bool (*read_registers)(struct target *t, int tid, struct registers *out);
    /* Only general registers and rip, which may be known at once. NULL: as read_registers. */
    bool (*read_general)(struct target *t, int tid, struct registers *out);
    /* Changes are made in a copy, which is thrown away when execution is asked to go on in the recording. */
    bool (*write_registers)(struct target *t, int tid, const struct registers *in);
    /* Bytes read; less than n where memory ends. */
    size_t (*read_memory)(struct target *t, uint64_t addr, void *to, size_t n);
    bool (*write_memory)(struct target *t, uint64_t addr, const void *from, size_t n);
    /* Whether the memory is shared, and what is read is what this process left there: others may have changed it since. NULL: never. */
    bool (*is_elsewhere)(struct target *t, uint64_t addr);
    /* Whether execution has gone elsewhere in such a copy: not only memory was changed. NULL: never. */
    bool (*has_left)(struct target *t);
    size_t (*threads)(struct target *t, struct thread_facts *out, size_t cap);
    size_t (*regions)(struct target *t, struct memory_region *out, size_t cap);
    size_t (*auxv)(struct target *t, void *to, size_t cap);
    /* Of the program, with a terminator each. NULL: not known. */
    size_t (*arguments)(struct target *t, void *to, size_t cap);
    /* siginfo_t of the signal that was last stopped for; 0: none. */
    size_t (*siginfo)(struct target *t, void *to, size_t cap);
    int (*pid)(struct target *t);
    /* Another process of the recording instead of this one, at its begin. False: there is none, and all is as before. NULL: never. */
    bool (*enter_process)(struct target *t, int pid);
    bool (*exe_path)(struct target *t, char *out, size_t cap); /* as recorded */
    /* A file of the recording by its recorded path, open for reading; -1: the recording does not have it. */
    int (*open_file)(struct target *t, const char *path);

    bool (*set_break)(struct target *t, enum break_kind kind, uint64_t addr, size_t len);
    bool (*clear_break)(struct target *t, enum break_kind kind, uint64_t addr, size_t len);
    /* The target may pass the breakpoint at addr where all of these are false, and need not. None: it always counts. */
    void (*set_conditions)(struct target *t, uint64_t addr, const struct condition *list, size_t n);
    /* gdb's `monitor` commands that concern the recording (when, info recording ...): text for the user into out. False: unknown. */
    bool (*command)(struct target *t, const char *text, char *out, size_t cap);
    /* An excursion begins: whatever is looked for from now on, the present comes back when it ends. False: not possible. */
    bool (*leave)(struct target *t);
    void (*come_back)(struct target *t);
    /* Backwards to the last store to [addr, addr + len), whatever breakpoints there are. */
    struct stop (*find_store)(struct target *t, uint64_t addr, size_t len);
    /* The last instructions of the present thread before the present place, oldest first: as far back as the last event, or as
     * `ticks`, and only those that write one of the registers `written` (bit by number; 0: all). *from: the first place that was
     * looked at; *at_event: it is the one behind the last event. */
    size_t (*history)(struct target *t, uint64_t ticks, uint64_t written, struct past *out, size_t cap,
                      struct position *from, bool *at_event);
    void (*close)(struct target *t);
};

struct target {
    const struct target_ops *ops;
};

#endif
