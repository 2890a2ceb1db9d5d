/* Mode: what differs between standard execution, recording and replay. One object each (run.c, record.c, replay.c); nobody
 * else asks which mode this is. A NULL member means: nothing to do. */
#ifndef REPRISE_MODE_H
#define REPRISE_MODE_H

#include "sphere/gate.h"
#include "sphere/shared.h"

struct file_id;
struct mapping;
struct value_access;

struct mode {
    const char *name;
    const struct policy *policy;
    bool kernel_signals;  /* masks and handlers of the program are the kernel's business, too */
    bool hides_vdso;      /* the program makes real calls for the time */
    bool own_memory_only; /* nobody writes to a program's memory behind its back: its recording would not know */
    bool same_fpu;        /* what fnstenv and xsave store must not depend on when threads were switched */
    /* Asynchronous signals wait for a tick point, where `tick_budget` delivers them. */
    bool defers_signals;

    void (*syscall)(struct tblock *t);     /* engine_host.syscall */
    void (*tick_budget)(struct tblock *t); /* engine_host.tick_budget */
    void (*insn)(struct tblock *t);        /* an instruction whose result is an input */
    void (*spins)(struct tblock *t);       /* it has executed `pause`: it probably waits for another thread. NULL: never mind */
    /* The instruction at t's pc has stored where the processor last was with x87 work, which that may have forgotten. */
    void (*x87_pointers)(struct tblock *t, uint64_t pointers[2]);

    /* A call by int $0x80 that has no counterpart; its result. NULL: it is issued. */
    long (*legacy)(struct tblock *t, uint32_t nr, const uint64_t a[6]);
    /* An instruction has raised a fault that it will raise again when it is tried again; kills: it ends the process. True: try. */
    bool (*fault)(struct thread *t, const struct pending_signal *s, bool kills);
    /* A signal is about to be delivered: a tracer may want it not to be, or another one. False: it is not. */
    bool (*before_signal)(struct thread *t, struct pending_signal *s, uint8_t *flags);
    /* It is delivered; may change what a fault reports. False: it is not, after all. */
    bool (*signal)(struct thread *t, struct pending_signal *s, uint8_t flags);
    /* Asks the program's listener what becomes of a call (listener.h). */
    long (*ask)(struct tblock *t, uint64_t nr, const uint64_t a[6]);
    /* One thread ends without a call of its own (seccomp). */
    void (*thread_killed)(struct thread *t, int signo);
    /* The process dies of a signal. */
    void (*death)(struct thread *t, int signo);
    /* mmap() of memory that the kernel fills by itself. NULL: like any other. */
    long (*map_kernels)(const uint64_t a[6], int prot);
    /* The program maps a file; tracked: pages of it will change hands. */
    void (*keep_file)(int fd, const struct file_id *id, bool tracked);

    /* Shared memory: the page is to be owned when this returns; it is mapped at addr. */
    void (*acquire)(struct thread *t, struct shared_at at, gaddr addr);
    /* Private memory that shows a shared file: the page at addr, which is borrowed, becomes the program's own, if there is one. */
    void (*copy)(struct thread *t, gaddr addr, bool faulted);
    /* Shared memory: does the instruction at t's pc, which touches that page, if the page is nobody's. */
    bool (*access)(struct thread *t, struct shared_at at, const struct value_access *a, bool faulted);
    /* Whether a shared mapping of a file, new, is tracked. */
    bool (*tracks)(int fd, uint64_t object);

    /* Tracing (traced.h): t stops; gives up the turn or takes it again; has been written to by another process; goes on, with registers
     * that the tracer has changed, flags of the TURN, and a signal. */
    void (*trace_stop)(struct thread *t, uint8_t flags);
    void (*trace_turn)(struct thread *t, bool take);
    void (*trace_wrote)(struct thread *t, gaddr addr, size_t len, uint8_t flags);
    void (*trace_go)(struct thread *t, bool changed, uint8_t flags, uint16_t signal);

    /* Around the making of an R-thread in this address space. */
    void (*before_clone)(struct thread *t, struct thread *child);
    void (*after_clone)(struct thread *t, struct thread *child, long ret);
    /* The first thing that a new R-thread does. */
    void (*thread_begin)(struct thread *t);

    /* The image is about to be replaced: adds options for the runtime that starts over; their length. */
    size_t (*before_exec)(struct thread *t, char *options, size_t cap);
    void (*exec_failed)(struct thread *t);
};

extern const struct mode mode_run, mode_record, mode_replay;
extern const struct mode *the_mode;

#endif
