/* Snapshot: what a checkpoint holds beside memory: registers and masks of all R-threads, handlers, mappings, and where the stream
 * goes on. A struct snapshot; n_threads times a struct snapshot_thread with `extended_size` bytes behind it; n_regions times a
 * struct snapshot_region; n_advice times a struct snapshot_advice; n_objects times a struct snapshot_object; n_owned times a
 * struct snapshot_owned; seccomp filters as text. Written by the runtime that records, read by one that restores; the bytes are hostile then.
 * Normative text: docs/formats.md. */
#ifndef REPRISE_LOG_SNAPSHOT_H
#define REPRISE_LOG_SNAPSHOT_H

#include <stdint.h>

#include "log/events.h"

#define SNAPSHOT_MAGIC 0x35305041534e5052ull /* "RPNSAP05" */
#define SNAPSHOT_SIGNALS 64
#define SNAPSHOT_EXTENDED_MAX 16384u /* a multiple of 8 */
#define SNAPSHOT_THREADS_MAX 65536u
#define SNAPSHOT_REGIONS_MAX 1000000u
#define SNAPSHOT_ADVICE_MAX 65536u
#define SNAPSHOT_FILTERS_MAX (64ul << 20) /* bytes */
#define SNAPSHOT_OBJECTS_MAX 4096u
#define SNAPSHOT_OWNED_MAX 1000000u

/* Addresses of a checkpoint's pages from here on are no memory: page p of the snapshot's object n is at
 * SHARED_PAGES_AT + n * SHARED_PAGES_ROOM + p * 4096. */
#define SHARED_PAGES_AT (1ull << 48)
#define SHARED_PAGES_ROOM (1ull << 36)

struct snapshot_action {
    uint64_t handler, flags, restorer, mask;
};

struct snapshot {
    uint64_t magic;
    uint64_t event, position; /* where the stream goes on: events and bytes before that */
    uint32_t n_threads, n_regions;
    uint32_t thread; /* the R-thread that goes on; it stands in front of an instruction */
    uint32_t pid;
    uint64_t brk_start, brk_end;
    uint64_t xcr0;
    uint32_t extended_size; /* bytes of vector and x87 registers behind each thread, as xsave lays them out */
    uint16_t mdwe;
    uint16_t tiles; /* 1: it may use AMX */
    uint64_t ended_ticks;             /* of R-threads that have ended */
    uint32_t seccomp_mode, n_filters; /* of all R-threads */
    uint64_t filters_len; /* bytes of filters, the last part: each in hexadecimal digits and a NUL, padded to 8 */
    struct snapshot_action actions[SNAPSHOT_SIGNALS]; /* of signal 1, 2 ... */
    char comm[16];
    char exe[512];
    uint32_t n_advice;
    uint32_t anonymous; /* mappings of shared anonymous memory that the process has made so far */
    uint32_t n_objects, n_owned;
};

#define SNAPSHOT_RUNS 0 /* snapshot_thread.awaits: the one that goes on */
#define SNAPSHOT_TURN 1 /* its next event is TURN */
#define SNAPSHOT_CALL 2 /* it has entered a system call, whose events are still to come */
#define SNAPSHOT_STOP 3 /* it is stopped for its tracer: POKE, REGS and a TURN that ends the stop are still to come */

#define SNAPSHOT_RESTORE_MASK 1 /* flags */
#define SNAPSHOT_TRAP_FLAG 2
#define SNAPSHOT_STEPPED 4
#define SNAPSHOT_HAS_OP 8
#define SNAPSHOT_LEGACY 16 /* the call is one by int $0x80 or the vsyscall page */
#define SNAPSHOT_OWES 32   /* vector and x87 registers are not here: EXTENDED comes in front of its call's events */
#define SNAPSHOT_READS_IMPLY_EXEC 64 /* personality() */
#define SNAPSHOT_IN_CALL 128         /* SNAPSHOT_STOP: in a call or right behind it */

struct snapshot_thread {
    uint32_t number;
    int32_t tid;
    uint32_t awaits, flags;
    uint64_t ticks;
    uint64_t gpr[16], pc, rflags; /* gpr: rax rcx rdx rbx rsp rbp rsi rdi r8.. */
    uint64_t fs_base, gs_base;
    uint32_t gs, reserved;
    uint64_t sigmask, saved_mask;
    uint64_t altstack_sp, altstack_size;
    int32_t altstack_flags;
    uint32_t legacy_nr;
    uint64_t shown_err, shown_trapno, shown_cr2;
    uint64_t clear_tid, robust_head;
    uint64_t op_event, op_ticks; /* where it last took events */
    uint64_t legacy_gpr[16], legacy_pc, legacy_next, legacy_pops;
    char name[16]; /* that the program gave it; "": none */
};

#define REGION_TRACKED 1      /* its pages are acquired and released */
#define REGION_SHOWS_SHARED 2 /* private: `object` is what it shows where the program has not written */
#define REGION_BORROWED 4     /* with it: pages are copied when they are touched */

struct snapshot_region {
    struct ev_map map;
    uint64_t object; /* shared memory: its number (snapshot_object); 0: none */
    uint32_t flags;  /* REGION_* */
    uint32_t birth;  /* of its file, as in ev_mapped.flags */
};

/* Memory that children of the process are not to have, or to find empty. */
struct snapshot_advice {
    uint64_t start, end;
    uint64_t advice; /* MADV_DONTFORK, MADV_WIPEONFORK or MADV_GUARD_INSTALL */
};

#define SNAPSHOT_INHERITED 1 /* snapshot_object.flags: it was there when the stream began, with a fork */

/* Shared memory of which the checkpoint has pages. Others are what they were when the stream began (SNAPSHOT_INHERITED), what the
 * file contained when it was mapped first, or zero. */
struct snapshot_object {
    uint64_t object;        /* as in ev_page */
    uint64_t flags;         /* SNAPSHOT_INHERITED */
    uint64_t cut;           /* what lies behind this byte was cut off since, and is zero unless the checkpoint has it */
    struct ev_mapped first; /* of a file: what it was when it was mapped first; ino 0: it was not */
};

struct snapshot_owned { /* pages [page, page + n) of an object are this process's */
    uint64_t object, page, n;
};

_Static_assert(sizeof(struct snapshot_object) == 88, "snapshot_object");
_Static_assert(sizeof(struct snapshot_owned) == 24, "snapshot_owned");
_Static_assert(sizeof(struct snapshot) == 2688, "snapshot");
_Static_assert(sizeof(struct snapshot_thread) == 456, "snapshot_thread");
_Static_assert(sizeof(struct snapshot_region) == 120, "snapshot_region");

#endif
