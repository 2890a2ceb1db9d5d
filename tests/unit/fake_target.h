/* A target without a program: what it has executed at time t follows from t alone, so it runs backwards as well as forwards.
 *
 * Threads take turns of 100 steps. A step goes one byte on in a loop of code, and writes t into a word of data and reads
 * another one. Registers tell the time. For the tests of src/rsp. */
#ifndef REPRISE_FAKE_TARGET_H
#define REPRISE_FAKE_TARGET_H

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rsp/target.h"

#define FAKE_PID 4242
#define FAKE_CODE 0x401000ul
#define FAKE_LOOP 1024ul
#define FAKE_DATA 0x404000ul
#define FAKE_WORDS 16ul
#define FAKE_STACK 0x7fff0000ul /* a page for each thread */
#define FAKE_PAGE 4096ul
#define FAKE_TURN 100ul
#define FAKE_THREADS 3

struct fake {
    struct target target;
    uint64_t t, end;
    uint64_t signal_at; /* SIGUSR1 is delivered here; 0: never */
    uint64_t signals;   /* to stop for */
    struct catches catches;
    uint64_t stray; /* reads outside the guest */
    bool interrupted;
    unsigned breaks[FAKE_LOOP], watches[3][FAKE_WORDS]; /* by break_kind - 1 */
    unsigned n_breaks, n_set;
    const char *program; /* the file behind /fake/program */
    const char *exe;     /* NULL: that */
    bool changed;        /* a copy is at hand: */
    struct registers registers[FAKE_THREADS];
    uint8_t data[FAKE_PAGE];
};

static inline struct fake *fake_of(struct target *t) { return (struct fake *)t; }

/* ---- what follows from the time ---- */

static unsigned fake_running(const struct fake *f) { return f->t / FAKE_TURN % FAKE_THREADS; }

static uint64_t fake_steps(const struct fake *f, unsigned thread) {
    uint64_t round = FAKE_TURN * FAKE_THREADS, in = f->t % round, begin = thread * FAKE_TURN;
    uint64_t part = in <= begin ? 0 : in - begin;
    return f->t / round * FAKE_TURN + (part < FAKE_TURN ? part : FAKE_TURN);
}

static uint64_t fake_pc(const struct fake *f, unsigned thread) { return FAKE_CODE + fake_steps(f, thread) % FAKE_LOOP; }

/* Step t writes t + 1 to word t % 16 and reads the word 8 further. */
static uint64_t fake_word(const struct fake *f, uint64_t i) {
    if (i >= FAKE_WORDS || f->t == 0) return 0;
    uint64_t last = f->t - 1; /* the step done last */
    uint64_t back = (last % FAKE_WORDS + FAKE_WORDS - i) % FAKE_WORDS;
    return back > last ? 0 : last - back + 1;
}

static void fake_fill(const struct fake *f, unsigned thread, struct registers *r) {
    *r = (struct registers){.rip = fake_pc(f, thread), .eflags = 0x246, .fs_base = 0x7000 + thread, .orig_rax = ~0ul};
    for (unsigned i = 0; i < 16; i++) r->gpr[i] = 0x1000 * i + thread;
    r->gpr[0] = f->t;
    r->gpr[1] = 1000 + thread;
    r->gpr[6] = r->gpr[7] = FAKE_STACK + FAKE_PAGE * thread + 2048;
    r->cs = 0x33, r->ss = 0x2b;
    r->xcr0 = 0x2e7;
    r->xsave_size = 4096;
    for (unsigned i = 0; i < sizeof r->xsave; i++) r->xsave[i] = (uint8_t)(i / 4 + thread);
    memset(r->xsave + 512, 0, 64);
    uint64_t all = 0x2e7;
    memcpy(r->xsave + 512, &all, sizeof all);
    static const uint8_t control[8] = {0x7f, 0x03, 0, 0, 0x80, 0, 0, 0}; /* one register in use, top 0 */
    memcpy(r->xsave, control, sizeof control);
    static const uint8_t mxcsr[4] = {0x80, 0x1f};
    memcpy(r->xsave + 24, mxcsr, sizeof mxcsr);
}

static bool fake_byte(struct fake *f, uint64_t a, uint8_t *to) {
    if (a >= FAKE_CODE && a < FAKE_CODE + FAKE_PAGE) {
        *to = 0x90;
    } else if (a >= FAKE_DATA && a < FAKE_DATA + FAKE_PAGE) {
        uint64_t word = fake_word(f, (a - FAKE_DATA) / 8);
        *to = f->changed ? f->data[a - FAKE_DATA] : (uint8_t)(word >> (a % 8 * 8));
    } else if (a >= FAKE_STACK && a < FAKE_STACK + FAKE_PAGE * FAKE_THREADS) {
        *to = 0;
    } else {
        f->stray++;
        return false;
    }
    return true;
}

/* The copy that is written to. */
static void fake_change(struct fake *f) {
    if (f->changed) return;
    for (unsigned i = 0; i < FAKE_THREADS; i++) fake_fill(f, i, &f->registers[i]);
    for (unsigned i = 0; i < FAKE_PAGE; i++) fake_byte(f, FAKE_DATA + i, &f->data[i]);
    f->changed = true;
}

/* ---- operations ---- */

static struct position fake_where(struct target *t) {
    uint64_t now = fake_of(t)->t;
    return (struct position){now / FAKE_TURN, now % FAKE_TURN, 0};
}

static int fake_current(struct target *t) { return 1000 + (int)fake_running(fake_of(t)); }

static struct stop fake_stop(struct fake *f, enum stop_reason why) {
    return (struct stop){.reason = why, .thread = fake_current(&f->target)};
}

static bool fake_watched(struct fake *f, uint64_t step, bool backward, struct stop *s) {
    uint64_t wrote = step % FAKE_WORDS, read = (step + 8) % FAKE_WORDS;
    bool hit = f->watches[0][wrote] || f->watches[2][wrote];
    uint64_t at = wrote;
    if (!hit) hit = f->watches[1][read] || f->watches[2][read], at = read;
    if (!hit) return false;
    *s = fake_stop(f, STOP_WATCHPOINT);
    s->thread = 1000 + (int)(step / FAKE_TURN % FAKE_THREADS);
    s->addr = FAKE_DATA + 8 * at;
    return true;
}

static struct stop fake_run(struct target *t, bool backward, bool step) {
    struct fake *f = fake_of(t);
    struct stop s;
    f->changed = false;
    __atomic_store_n(&f->interrupted, false, __ATOMIC_SEQ_CST);
    for (;;) {
        if (backward && f->t == 0) return fake_stop(f, STOP_BEGIN);
        if (!backward && f->t == f->end) {
            s = fake_stop(f, STOP_EXITED);
            s.status = 3;
            return s;
        }
        int stepper = fake_current(t);
        f->t += backward ? -1ul : 1;
        if (backward) stepper = fake_current(t);
        if (fake_watched(f, backward ? f->t : f->t - 1, backward, &s)) return s;
        if (f->signal_at && f->t == f->signal_at && f->signals >> (SIGUSR1 - 1) & 1) {
            s = fake_stop(f, STOP_SIGNAL);
            s.signo = SIGUSR1;
            return s;
        }
        if (f->n_breaks && f->breaks[fake_pc(f, fake_running(f)) - FAKE_CODE]) return fake_stop(f, STOP_BREAKPOINT);
        if (step) {
            s = fake_stop(f, STOP_STEP);
            s.thread = stepper;
            return s;
        }
        if (__atomic_load_n(&f->interrupted, __ATOMIC_RELAXED)) return fake_stop(f, STOP_INTERRUPTED);
    }
}

static struct stop fake_step_of(struct target *t, bool backward, int tid, struct code_range within) {
    struct stop s = {.reason = STOP_FAILED};
    if (tid < 1000 || tid >= 1000 + FAKE_THREADS) return s;
    do s = fake_run(t, backward, true);
    while (s.reason == STOP_STEP && s.thread != tid);
    return s;
}

static void fake_want_signals(struct target *t, uint64_t set) { fake_of(t)->signals = set; }
static void fake_want_catches(struct target *t, const struct catches *c) { fake_of(t)->catches = *c; }

static struct stop fake_go(struct fake *f, uint64_t t, enum stop_reason why) {
    f->changed = false;
    f->t = t;
    return fake_stop(f, why);
}

static struct stop fake_seek(struct target *t, struct position to) {
    uint64_t at;
    struct fake *f = fake_of(t);
    if (__builtin_mul_overflow(to.event, FAKE_TURN, &at) || __builtin_add_overflow(at, to.ticks, &at) || at > f->end) {
        struct stop s = fake_stop(f, STOP_FAILED);
        strcpy(s.text, "no such position");
        return s;
    }
    return fake_go(f, at, STOP_STEP);
}

static struct stop fake_seek_begin(struct target *t) { return fake_go(fake_of(t), 0, STOP_BEGIN); }
static struct stop fake_seek_end(struct target *t) { return fake_go(fake_of(t), fake_of(t)->end, STOP_EXITED); }
static void fake_interrupt(struct target *t) { __atomic_store_n(&fake_of(t)->interrupted, true, __ATOMIC_SEQ_CST); }

static bool fake_read_registers(struct target *t, int tid, struct registers *out) {
    struct fake *f = fake_of(t);
    if (tid < 1000 || tid >= 1000 + FAKE_THREADS) return false;
    if (f->changed)
        *out = f->registers[tid - 1000];
    else
        fake_fill(f, (unsigned)tid - 1000, out);
    return true;
}

static bool fake_write_registers(struct target *t, int tid, const struct registers *in) {
    if (tid < 1000 || tid >= 1000 + FAKE_THREADS) return false;
    fake_change(fake_of(t));
    fake_of(t)->registers[tid - 1000] = *in;
    return true;
}

static size_t fake_read_memory(struct target *t, uint64_t addr, void *to, size_t n) {
    size_t i = 0;
    while (i < n && fake_byte(fake_of(t), addr + i, (uint8_t *)to + i)) i++;
    return i;
}

static bool fake_write_memory(struct target *t, uint64_t addr, const void *from, size_t n) {
    if (addr < FAKE_DATA || addr - FAKE_DATA > FAKE_PAGE || n > FAKE_PAGE - (addr - FAKE_DATA)) return false;
    fake_change(fake_of(t));
    memcpy(fake_of(t)->data + (addr - FAKE_DATA), from, n);
    return true;
}

static size_t fake_threads(struct target *t, struct thread_facts *out, size_t cap) {
    size_t n = 0;
    for (; n < FAKE_THREADS && n < cap; n++) {
        out[n].tid = 1000 + (int)n;
        snprintf(out[n].name, sizeof out->name, "worker <%zu>", n);
        snprintf(out[n].state, sizeof out->state, "%s", n == fake_running(fake_of(t)) ? "running" : "waits & waits");
    }
    return n;
}

static size_t fake_regions(struct target *t, struct memory_region *out, size_t cap) {
    static const struct memory_region all[] = {
        {FAKE_CODE, FAKE_CODE + FAKE_PAGE, PROT_READ | PROT_EXEC, "/fake/program"},
        {FAKE_DATA, FAKE_DATA + FAKE_PAGE, PROT_READ | PROT_WRITE, "/fake/program"},
        {FAKE_STACK, FAKE_STACK + FAKE_PAGE * FAKE_THREADS, PROT_READ | PROT_WRITE, "[stack]"},
    };
    size_t n = 0;
    for (; n < sizeof all / sizeof *all && n < cap; n++) out[n] = all[n];
    return n;
}

static size_t fake_auxv(struct target *t, void *to, size_t cap) {
    static const uint64_t pairs[] = {6, 4096, 9, FAKE_CODE, 0, 0};
    memcpy(to, pairs, sizeof pairs);
    return sizeof pairs;
}

static size_t fake_siginfo(struct target *t, void *to, size_t cap) {
    siginfo_t info = {.si_signo = SIGUSR1};
    memcpy(to, &info, sizeof info < cap ? sizeof info : cap);
    return fake_of(t)->signal_at == fake_of(t)->t && fake_of(t)->t ? sizeof info : 0;
}

static int fake_pid(struct target *t) { return FAKE_PID; }

static bool fake_exe(struct target *t, char *out, size_t cap) {
    snprintf(out, cap, "%s", fake_of(t)->exe ? fake_of(t)->exe : "/fake/program");
    return true;
}

static int fake_open_file(struct target *t, const char *path) {
    const char *program = fake_of(t)->program;
    return program && strcmp(path, "/fake/program") == 0 ? open(program, O_RDONLY | O_CLOEXEC) : -1;
}

/* Counts set places up or down. */
static bool fake_count(struct fake *f, enum break_kind kind, uint64_t addr, uint64_t len, unsigned by) {
    f->n_set += by;
    if (kind == BREAK_EXEC) {
        f->n_breaks += by;
        if (addr >= FAKE_CODE && addr < FAKE_CODE + FAKE_LOOP) f->breaks[addr - FAKE_CODE] += by;
        return true;
    }
    for (uint64_t i = 0; i < FAKE_WORDS; i++)
        if (addr < FAKE_DATA + 8 * i + 8 && addr + len > FAKE_DATA + 8 * i) f->watches[kind - 1][i] += by;
    return true;
}

static bool fake_set(struct target *t, enum break_kind kind, uint64_t addr, size_t len) {
    return fake_count(fake_of(t), kind, addr, len, 1);
}
static bool fake_clear(struct target *t, enum break_kind kind, uint64_t addr, size_t len) {
    return fake_count(fake_of(t), kind, addr, len, -1u);
}

/* Passes none: who set them looks. */
static void fake_set_conditions(struct target *t, uint64_t addr, const struct condition *list, size_t n) {}

static bool fake_command(struct target *t, const char *text, char *out, size_t cap) {
    if (strncmp(text, "echo ", 5) != 0 && strcmp(text, "info recording") != 0) return false;
    snprintf(out, cap, "%s\n", text);
    return true;
}

static void fake_close(struct target *t) {}

static const struct target_ops fake_ops = {
    .where = fake_where,
    .current_thread = fake_current,
    .run = fake_run,
    .step_of = fake_step_of,
    .want_signals = fake_want_signals,
    .want_catches = fake_want_catches,
    .seek = fake_seek,
    .seek_begin = fake_seek_begin,
    .seek_end = fake_seek_end,
    .interrupt = fake_interrupt,
    .read_registers = fake_read_registers,
    .write_registers = fake_write_registers,
    .read_memory = fake_read_memory,
    .write_memory = fake_write_memory,
    .threads = fake_threads,
    .regions = fake_regions,
    .auxv = fake_auxv,
    .siginfo = fake_siginfo,
    .pid = fake_pid,
    .exe_path = fake_exe,
    .open_file = fake_open_file,
    .set_break = fake_set,
    .clear_break = fake_clear,
    .set_conditions = fake_set_conditions,
    .command = fake_command,
    .close = fake_close,
};

static void fake_open(struct fake *f, uint64_t end) {
    *f = (struct fake){.target = {&fake_ops}, .end = end, .signals = ~0ul};
}

#endif
