/* Events: what a stream of a recording consists of. Shared by the runtime, the controller and the readers.
 *
 * A stream belongs to one address space: it starts with an exec or a fork and ends with exit, exec or death. The threads of
 * an address space take turns, so the order of events in the stream is the order in which things happened. Events of
 * different streams are ordered only by sequence numbers that they carry. Normative text: docs/formats.md.
 *
 * Everything is little endian; every event starts with a struct event and is a multiple of 8 bytes long. */
#ifndef REPRISE_LOG_EVENTS_H
#define REPRISE_LOG_EVENTS_H

#include <stdint.h>

#define EVENT_MAX 65536 /* bytes; larger outputs are cut into several events */

/* X(name, kind number, what the payload is) */
#define EVENT_KINDS(X)                                                                                    \
    X(START, 1)       /* struct ev_start; first event after exec */                                       \
    X(FORKED, 2)      /* struct ev_forked; first event after fork */                                      \
    X(MAP, 3)         /* struct ev_map; the mappings that START announces */                              \
    X(MEMORY, 4)      /* struct ev_memory + bytes; contents that START announces */                       \
    X(SYSCALL, 5)     /* struct ev_syscall; code = number */                                              \
    X(OUT, 6)         /* struct ev_memory + bytes: what the call before wrote */                          \
    X(FORK, 7)        /* struct ev_child; the call under way makes a process, whose stream is named */    \
    X(CLONE, 8)       /* struct ev_child; the call under way makes an R-thread of this stream */          \
    X(EXEC, 9)        /* struct ev_child; the image is replaced, the process goes on in another stream */ \
    X(EXIT, 10)       /* struct ev_exit; one R-thread ends */                                             \
    X(END, 11)        /* struct ev_exit; the process ends: last event */                                  \
    X(SIGNAL, 12)     /* struct ev_signal; code = signal number */                                        \
    X(FAULT, 13)      /* struct ev_signal; the same, raised by an instruction */                          \
    X(PREEMPT, 14)    /* the R-thread loses its turn at the tick point that `ticks` names */              \
    X(TURN, 15)       /* the R-thread goes on where it lost its turn, or starts */                        \
    X(INSN, 16)       /* struct ev_insn; code = enum recorded_kind */                                     \
    X(HASH, 17)       /* struct ev_hash; record --check */                                                \
    X(ACQUIRE, 18)    /* struct ev_page; a shared page comes to this process; MEMORY: its contents */     \
    X(RELEASE, 19)    /* struct ev_page; a shared page goes to another process */                         \
    X(MAPPED, 20)     /* struct ev_mapped; what the mapping call under way maps: follows its SYSCALL */   \
    X(CHANGE, 21)     /* struct ev_change + bytes: how the call before changed a file that is mapped */   \
    X(CHECKPOINT, 22) /* struct ev_checkpoint; the state here is kept beside the log */                   \
    X(STOP, 23)       /* the R-thread stops for its tracer; TURN when it goes on */                       \
    X(POKE, 24)       /* struct ev_memory + bytes: what another process, or the kernel, has written */    \
    X(REGS, 25)       /* struct ev_regs + bytes: what its tracer has made of the registers */             \
    X(EXTENDED, 26) /* struct ev_extended + bytes; registers that checkpoints lack because the R-thread was in a call */

enum event_kind {
#define EVENT_ENUM(name, number) EV_##name = number,
    EVENT_KINDS(EVENT_ENUM)
#undef EVENT_ENUM
};

struct event {
    uint8_t kind;    /* enum event_kind */
    uint8_t flags;   /* EVF_* */
    uint16_t code;   /* by kind */
    uint32_t size;   /* bytes with this head */
    uint32_t thread; /* R-thread, numbered from 0 within the stream */
    uint32_t regs;   /* hash of the general registers and pc of the R-thread */
    uint64_t ticks;  /* of the R-thread, since it began */
};

#define EVF_AT_GATE \
    1               /* SIGNAL: instead of the system call that the R-thread is about to make, which it will try again */
#define EVF_AFTER 2 /* SIGNAL: right behind the event before it; without both: at a tick point */
/* EXIT: killed by another process, while it waited or, with a HASH behind it, within the next tick */
/* RELEASE: AT_GATE: when the R-thread makes its next call; AFTER: when all R-threads wait */
/* CHECKPOINT: like SIGNAL; AT_GATE also where an instruction is about to fault */
#define EVF_RESTORE_MASK 4 /* SYSCALL: the call waited under a signal mask of its own, which is in out_seq */
#define EVF_RETRY 16       /* STOP: with AT_GATE: the R-thread is back at the call, which it will try again */
#define EVF_FAULT 32       /* STOP: where an instruction raises a signal, whose FAULT may follow */
#define EVF_STEP 64        /* TURN behind a STOP: one instruction, or one call, and it stops again */
#define EVF_ANSWERED 128 /* SYSCALL: a filter of the program's, or who listens for it, has answered; it was not made */
#define EVF_OUTPUT 8     /* SYSCALL: went to the sphere's standard output or error; see ev_syscall.out_seq */

struct ev_start {
    uint32_t pid, ppid; /* as the kernel numbered them */
    uint32_t n_maps;    /* MAP events that follow */
    uint32_t n_memory;  /* MEMORY events that follow those */
    uint64_t pc, rsp, rflags;
    uint64_t brk_start;
    uint64_t sigmask;
    uint64_t ignored; /* signals whose action is SIG_IGN, bit signo - 1 */
    uint64_t parent;  /* stream that ended in this exec, or -1 */
    uint64_t auxv_start, auxv_end, arg_start, arg_end, env_start, env_end; /* in the program's memory */
    uint8_t
        out_fds[64]; /* what the first descriptors are: 0 nothing of interest, 1 standard output, 2 standard error */
    char comm[16];
    char exe[512]; /* path of the program, cut off if longer */
};

struct ev_forked {
    uint32_t pid, ppid;
    uint64_t parent;        /* stream */
    uint32_t parent_thread; /* its R-thread: number 0 of this stream */
    uint32_t reserved;
};

#define OBJECT_NONE 0 /* anonymous */
struct object_name {  /* a file's contents: XXH3 128 of all its bytes; all zero: anonymous memory */
    uint64_t lo, hi;
};

struct ev_map {
    uint64_t start, end, offset;
    uint32_t prot, flags; /* as the program asked */
    struct object_name object;
    uint64_t dev, ino, size, mtime_ns, ctime_ns; /* identity of the file */
    char name[16];
};

#define MAPPED_UNSURE 1     /* the file may have changed without a trace in its identity */
#define MAPPED_TRACKED 2    /* its pages are acquired and released; private: those that are not owned are borrowed */
#define MAPPED_FIRST 4      /* nobody in the sphere had mapped it so before: `object` is what it contained */
#define MAPPED_OWNED 8      /* all its pages, up to its end, are this process's from now on */
#define MAPPED_ANONYMOUS 16 /* no file: shared anonymous memory, by way of /dev/zero */
#define MAPPED_PRIVATE 32   /* with ANONYMOUS: no shared memory, but the program's own: a ring of packets */
#define MAPPED_BORROWED 64  /* private: others have the file open for writing, its pages are borrowed */
#define MAPPED_AGAIN 128    /* with ANONYMOUS: memory that is mapped already; `ino` is its number */
#define MAPPED_BIRTH(flags) ((uint32_t)((flags) >> 32)) /* tells apart files that had the same inode */
#define MAP_UNSURE 0x80000000u                          /* the same in ev_map.prot */

struct ev_mapped {
    struct object_name object;
    uint64_t dev, ino, size, mtime_ns, ctime_ns;
    uint64_t flags; /* MAPPED_* */
};

struct ev_change {
    uint64_t dev, ino; /* of the file */
    uint64_t offset;   /* where the bytes go */
    uint64_t size;     /* of the file afterwards */
    uint32_t len;      /* bytes that follow; padded to a multiple of 8 */
    uint32_t birth;    /* of a file whose pages are acquired and released, as in ev_mapped.flags; 0: of another */
};

struct ev_memory {
    uint64_t addr;
    uint32_t len; /* bytes that follow; padded to a multiple of 8 */
    uint32_t reserved;
};

struct ev_syscall {
    int64_t ret;
    uint64_t args[6];
    uint32_t outs;   /* OUT events that follow */
    uint32_t out_fd; /* EVF_OUTPUT: 1 or 2 */
    /* EVF_OUTPUT: place among all outputs of the sphere, from 0. No flag: 0, or where the call has made the stack begin */
    uint64_t out_seq;
};

struct ev_child {
    uint64_t stream; /* FORK, EXEC: the child's stream. CLONE: this one */
    uint32_t thread; /* CLONE: number of the new R-thread */
    uint32_t reserved;
};

struct ev_exit {
    int32_t status; /* as wait() gives it: signal, or exit code << 8 */
    uint32_t reserved;
};

struct ev_signal {
    uint8_t info[128];         /* siginfo_t */
    uint64_t err, trapno, cr2; /* FAULT: as the processor reported it */
};

enum recorded_kind {
    RECORDED_RDTSC = 1,
    RECORDED_RDTSCP,
    RECORDED_CPUID,
    RECORDED_RDRAND,
    RECORDED_RDSEED,
    RECORDED_RDPID,
    RECORDED_XGETBV,
    RECORDED_LSL,
    RECORDED_SHARED, /* any that touches a value in memory which processes share */
    RECORDED_X87,    /* fnstenv, fnsave */
    RECORDED_RDPRU,
};

struct ev_insn {
    /* after the instruction; the one destination of rdrand, rdseed, rdpid, lsl is in rax. RECORDED_SHARED: rax, for long
     * operands also rbx to rdx, is what memory held; contents may follow, as behind an ACQUIRE.
     * RECORDED_X87: rax and rbx are the addresses that were stored, as they lie in memory */
    uint64_t rax, rbx, rcx, rdx;
    uint64_t flags; /* CF after rdrand, rdseed; ZF after lsl; all after rdpru. RECORDED_SHARED: INSN_SHOWN */
};

/* In what the process left in the page there is from now on what memory held behind the instruction, after what the contents say. */
#define INSN_SHOWN 1

struct ev_hash {
    uint64_t hash; /* of all writable private memory of the program, in address order */
    uint64_t bytes;
};

struct ev_regs {
    uint64_t gpr[16]; /* in hardware order: rax rcx rdx rbx rsp rbp rsi rdi r8..r15 */
    uint64_t pc, rflags, fs_base, gs_base;
    uint64_t sigmask;
    uint64_t extended; /* bytes that follow: vector and x87 registers as xsave lays them out; 0: they are as before */
};

struct ev_page {
    uint64_t object; /* shared object of the sphere */
    uint64_t page;   /* number of the page in it */
    uint32_t version;
    uint32_t lost;     /* ACQUIRE: so many versions before this one may be in no log: who had them was killed */
    uint32_t writable; /* 1; ACQUIRE: 2, the page was nobody's, its contents follow (MEMORY); PAGE_COPIED, PAGE_AWAITED */
    uint32_t from;     /* ACQUIRE: 1 + the stream that ended while it had the page; 0: it was released, or nobody's */
};

/* POKE, code: nothing is written, but pages of private mappings of the file that has the number `addr` are borrowed from now on. */
#define POKE_BORROWS 1

/* ACQUIRE: no page of an object comes, but `version` pages of memory, from number `page` on, which were borrowed, become the
 * program's own; their contents follow (MEMORY), unless they lie behind the file's end. `version` 0: there is no such page. */
#define PAGE_COPIED 3
/* ACQUIRE: no page comes yet. The stream `from` - 1 has ended: its replay has to be over before anything that this one does next. */
#define PAGE_AWAITED 4

/* Behind the ev_page of an ACQUIRE, if there is room: what the page holds when it comes, as the blocks of 64 bytes that follow. Behind
 * the ev_insn of RECORDED_SHARED: what it holds in front of the instruction. */
#define CONTENTS_BLOCK 64u
#define CONTENTS_WHOLE 1 /* flags: where there is no block, the page is zero; otherwise it is as the process left it */
struct ev_contents {
    uint64_t blocks; /* bit i: bytes i * 64.. follow */
    uint64_t flags;
};

enum { CHECKPOINT_TIMER, CHECKPOINT_SIGNAL, CHECKPOINT_EXIT, CHECKPOINT_ASKED }; /* ev_checkpoint.why */

struct ev_checkpoint {
    uint64_t number;  /* in the stream, from 0 */
    uint64_t threads; /* hash of what all R-threads have in registers */
    uint32_t why;
    uint32_t n_threads;
};

struct ev_extended { /* vector and x87 registers, as xsave stores them */
    uint64_t xcr0;
    uint32_t len; /* bytes that follow; padded to a multiple of 8 */
    uint32_t reserved;
};

#define EVENT_SIZE_CHECK(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type)
EVENT_SIZE_CHECK(event, 24);
EVENT_SIZE_CHECK(ev_start, 712);
EVENT_SIZE_CHECK(ev_forked, 24);
EVENT_SIZE_CHECK(ev_map, 104);
EVENT_SIZE_CHECK(ev_mapped, 64);
EVENT_SIZE_CHECK(ev_memory, 16);
EVENT_SIZE_CHECK(ev_change, 40);
EVENT_SIZE_CHECK(ev_syscall, 72);
EVENT_SIZE_CHECK(ev_child, 16);
EVENT_SIZE_CHECK(ev_exit, 8);
EVENT_SIZE_CHECK(ev_signal, 152);
EVENT_SIZE_CHECK(ev_insn, 40);
EVENT_SIZE_CHECK(ev_hash, 16);
EVENT_SIZE_CHECK(ev_regs, 176);
EVENT_SIZE_CHECK(ev_page, 32);
EVENT_SIZE_CHECK(ev_contents, 16);
EVENT_SIZE_CHECK(ev_checkpoint, 24);
EVENT_SIZE_CHECK(ev_extended, 16);

static inline uint32_t contents_bytes(uint64_t blocks) {
    uint32_t n = 0;
    for (; blocks; blocks &= blocks - 1) n += CONTENTS_BLOCK;
    return n;
}

/* Whether an event of this kind may have contents. */
static inline int event_may_have_contents(const struct event *e) {
    return e->kind == EV_ACQUIRE || (e->kind == EV_INSN && e->code == RECORDED_SHARED);
}

/* Those of an ACQUIRE or INSN; NULL: it has none. */
static inline const struct ev_contents *event_contents(const struct event *e) {
    uint64_t at = sizeof *e + (e->kind == EV_ACQUIRE ? sizeof(struct ev_page) : sizeof(struct ev_insn));
    const struct ev_contents *c = (const struct ev_contents *)((const uint8_t *)e + at);
    if (!event_may_have_contents(e) || e->size < at + sizeof *c) return 0;
    return e->size == at + sizeof *c + contents_bytes(c->blocks) ? c : 0;
}

#endif
