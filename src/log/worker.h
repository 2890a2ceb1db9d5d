/* Workers: replaying processes that a timeline steers, and what the two say to each other.
 *
 * One memfd: a struct worker_control, then WORKER_SLOTS slots, one for each worker. A worker stands still unless it was asked
 * to run. The timeline writes a request into the slot and counts `asked` up; the worker does it, writes the answer and counts
 * `answered` up, then rings the channel's doorbell. The answer to ASK_RUN is struct worker_stop: why it stopped, and where.
 * What workers write is not to be trusted: the timeline checks lengths and numbers. */
#ifndef REPRISE_LOG_WORKER_H
#define REPRISE_LOG_WORKER_H

#include <stdint.h>

#define WORKER_MAGIC 0x3430574b52505052ull
#define WORKER_SLOTS 96
#define WORKER_DATA 65536ul
#define WORKER_CHAIN 64
#define WORKER_FIRST 0 /* slot of the first one */
#define WORKER_NO_END UINT64_MAX

/* A place in the execution; see struct position in rsp/target.h. Steps count from the last tick or event, whichever is later. */
struct worker_place {
    uint64_t event, ticks, steps;
    uint32_t is_exact; /* otherwise steps is not known */
    uint32_t thread;   /* R-thread that runs there */
};

enum worker_reason {
    WORKER_NONE,
    WORKER_ARRIVED, /* where it was to go, or at the first place behind it if there is no such place */
    WORKER_STEPPED,
    WORKER_BREAK,
    WORKER_WATCH,
    WORKER_SIGNAL, /* about to be delivered */
    WORKER_CALL,   /* in front of system call `call` */
    WORKER_RETURN, /* behind it */
    WORKER_FORK,   /* the same, and there is a process `child` now */
    WORKER_PAUSED, /* has run for as long as was said */
    WORKER_INTERRUPTED,
    WORKER_ENDED,  /* no more events */
    WORKER_EXITED, /* status */
    WORKER_EXEC,
    WORKER_FAILED, /* text */
};

struct worker_hit {  /* a breakpoint or watchpoint */
    uint64_t number; /* counted from where the run began */
    uint32_t reason; /* WORKER_BREAK, WORKER_WATCH */
    uint32_t by_op;  /* what was watched was changed by what takes events: `place` is behind that */
    uint64_t addr;
    struct worker_place place;
    uint64_t pc, from_ticks;     /* where a run that stops for it stops: for a watchpoint in front of the instruction */
    uint64_t op_event, op_ticks; /* by_op */
};
#define WORKER_HITS 32

struct worker_stop {
    uint32_t reason; /* enum worker_reason */
    int32_t tid, signo, status;
    uint64_t addr; /* WORKER_WATCH */
    struct worker_place place;
    struct worker_place before;  /* with `single`: the place before that */
    uint64_t base_ticks;         /* of the R-thread, when the last event was over */
    uint64_t op_event, op_ticks; /* where the R-thread last took events: number of the first one */
    uint32_t has_op, has_siginfo;
    uint32_t is_fault;    /* WORKER_SIGNAL: of the instruction here, which has not been done */
    uint32_t is_anothers; /* WORKER_SIGNAL: the place is of the R-thread that ran last, and now waits */
    uint32_t is_again;    /* the instruction here took the last events, and has yet to be done */
    uint32_t is_inside;   /* WORKER_WATCH: of a repeated instruction, which may be partly done */
    uint32_t call;        /* WORKER_CALL, WORKER_RETURN */
    int32_t child;        /* WORKER_FORK */
    uint64_t copied;      /* pages that a copy of the worker has for itself at once: contents of shared files */
    uint64_t work;        /* grows along the execution: roughly ticks of all R-threads */
    uint64_t gpr[16], pc, rflags;
    uint64_t collected; /* with `collect`: hits, of which data holds the last WORKER_HITS, as a ring */
    uint64_t traced;    /* with `trace`: instructions remembered, of which data holds the last WORKER_PAST */
    uint8_t siginfo[128];
    char text[256];
};

enum worker_ask {
    ASK_RUN = 1,
    ASK_FORK,          /* arg[0]: slot of the new worker. Answer: its pid */
    ASK_REGISTERS,     /* arg[0]: R-thread. Answer: bytes of struct worker_registers in data; 0: no such thread */
    ASK_SET_REGISTERS, /* the same, from data */
    ASK_READ,          /* arg[0] address, arg[1] bytes. Answer: bytes read, into data */
    ASK_WRITE,         /* the same, from data; memory that is read-only for the program, too */
    ASK_THREADS,       /* Answer: number of struct worker_thread in data */
    ASK_REGIONS,       /* arg[0]: first. Answer: number of struct worker_region in data */
    ASK_BREAKS,        /* arg[0]: number of struct worker_break in data; arg[1]: in addition to those there are */
    ASK_CONDITIONS,    /* arg[0]: bytes of struct worker_condition in data; arg[1]: in addition */
    ASK_HASH,          /* Answer: of all private memory */
    ASK_SHARED, /* arg[0]: shared object, arg[1]: page. Answer: number of struct worker_shared in data, from there on */
    ASK_ELSEWHERE, /* arg[0]: address. Answer: 1 if its page is shared, and not this process's at present */
    ASK_DIVERT,    /* leaves the recording: runs on without a log */
};

#define WORKER_CALLS 512 /* system calls that can be told apart */
struct worker_catches {
    uint64_t calls[WORKER_CALLS / 64]; /* stops for these, in front of them and behind: bit by number */
    uint64_t forks;                    /* stops where a process was made */
};

#define AIM_NONE 0
#define AIM_PLACE 1
#define MATCH_REGISTERS 1
#define MATCH_PLACE 2 /* only pc and rsp: a repeated instruction changes the others */

struct worker_run {
    uint32_t aim;
    uint32_t step;    /* one instruction of R-thread `thread`; more, as long as it is in [within_start, within_end) */
    uint32_t single;  /* instruction by instruction all the way */
    uint32_t fresh;   /* a breakpoint where it stands now counts */
    uint32_t collect; /* does not stop for breakpoints and watchpoints, remembers the last ones */
    uint32_t steady;  /* not to be interrupted: what it looks for is needed, and near */
    uint32_t thread;
    uint32_t goes_on; /* hits are counted on from the run before, which stopped at one */
    uint64_t signals; /* stops for these: bit N - 1 for signal N */
    struct worker_catches catches;
    uint64_t event, ticks, steps; /* aim */
    uint64_t stop_at;             /* stops at the hit of this number only */
    uint64_t pause_us;            /* 0: never pauses */
    uint32_t match;               /* MATCH_: arrives where registers are these */
    uint32_t trace;               /* TRACE_, with `single`: remembers instructions... */
    uint64_t trace_writes;        /* ... that write one of these registers, bit by number; 0: all */
    uint64_t trace_all; /* stops when there is no more room, and in front of what stores somewhere that is not known */
    uint64_t match_pc, match_gpr[16];
    uint64_t within_start, within_end;
};

#define TRACE_REGISTERS 1
#define TRACE_STORES 2 /* registers, and what is overwritten */

#define WORKER_STORE_UNKNOWN UINT32_MAX
struct worker_past { /* an instruction, before it was executed */
    uint64_t ticks, steps, pc, rflags;
    uint64_t gpr[16];
    uint64_t store_at;            /* TRACE_STORES: where it stores, ... */
    uint32_t store_len, reserved; /* ... 0: nowhere */
    uint8_t old[32];              /* ... and what is there before */
};
#define WORKER_PAST (WORKER_DATA / sizeof(struct worker_past))

struct worker_registers {
    uint64_t gpr[16]; /* as struct tblock has them: rax rcx rdx rbx rsp rbp rsi rdi r8.. */
    uint64_t pc, rflags, fs_base, gs_base, orig_rax;
    uint32_t gs, in_call;
    uint64_t xcr0;
    uint32_t xsave_size, reserved;
    uint8_t xsave[];
};

struct worker_thread {
    uint32_t number;
    int32_t tid;
    uint32_t in_call; /* a system call: its number is in `call` */
    uint32_t is_current;
    uint32_t has_op, reserved;
    uint64_t op_event, op_ticks; /* where it last took events */
    char name[16];               /* "": the program's */
    uint64_t call, args[6];
};

struct worker_region {
    uint64_t start, end, offset, dev, ino;
    uint32_t prot, flags;
    char name[16];
};

struct worker_shared { /* a page of shared memory that is not zero, as this process knows it */
    uint64_t page;
    uint8_t bytes[4096];
};

/* WRITE: what is there changes. STORE: it is written, whether or not it changes. */
enum worker_break_kind {
    WORKER_BREAK_EXEC,
    WORKER_BREAK_WRITE,
    WORKER_BREAK_READ,
    WORKER_BREAK_ACCESS,
    WORKER_BREAK_STORE
};
struct worker_break {
    uint64_t addr, len;
    uint32_t kind, reserved;
};

/* Of the breakpoint at `addr`: it is one if any of its conditions is true, or cannot be evaluated (rsp/agent.h). */
struct worker_condition {
    uint64_t addr;
    uint32_t len, reserved;
    uint8_t code[];
};
static inline uint64_t worker_condition_size(uint64_t len) {
    return (sizeof(struct worker_condition) + len + 7) & ~7ul;
}

struct worker_slot {
    uint32_t asked;    /* futex */
    uint32_t answered; /* requests done */
    uint32_t pid;
    uint32_t ask;
    uint64_t arg[2];
    uint64_t answer;
    struct worker_run run;
    struct worker_stop stop;
    uint8_t reserved[4096 - 40 - sizeof(struct worker_run) - sizeof(struct worker_stop)];
    uint8_t data[WORKER_DATA];
};
_Static_assert(sizeof(struct worker_slot) == 4096 + WORKER_DATA, "whole pages");

enum { PAGES_UNKNOWN, PAGES_WANTED, PAGES_READY, PAGES_NONE, PAGES_INTERRUPTED }; /* worker_control.pages */

struct worker_control {
    uint64_t magic;
    uint32_t interrupt;           /* whoever runs is to stop soon */
    uint32_t quiet;               /* outputs are not repeated */
    uint64_t target;              /* stream that is debugged */
    uint64_t chain[WORKER_CHAIN]; /* streams that lead to it by fork, and itself; the first one began with START */
    uint32_t n_chain;
    uint32_t
        pages; /* futex: whether the page log (log/page_log.h) is there; a worker wants it, the timeline gets it... */
    uint32_t pages_fd; /* ... in this descriptor of its own */
    uint8_t reserved[4096 - 36 - 8 * WORKER_CHAIN];
};
_Static_assert(sizeof(struct worker_control) == 4096, "one page");

#define WORKER_BYTES (sizeof(struct worker_control) + WORKER_SLOTS * sizeof(struct worker_slot))

#endif
