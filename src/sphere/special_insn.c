#include "sphere/special_insn.h"
#include "sphere/borrowed.h"

#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/code_watch.h"
#include "sphere/debug.h"
#include "sphere/fpu_image.h"
#include "sphere/gate.h"
#include "sphere/legacy.h"
#include "sphere/mode.h"
#include "sphere/operand.h"
#include "sphere/recorded_insn.h"
#include "sphere/segment.h"
#include "sphere/shared.h"
#include "sphere/sigframe.h"
#include "sphere/signals.h"

#define SIGILL_ 4
#define SIGBUS_ 7
#define BUS_ADRERR_ 2
#define SIGSEGV_ 11
#define TRAP_INVALID_OPCODE 6

#define FLAG_NT 0x4000ull
#define POPF_FLAGS 0x244cd5ull /* what the program may change: arithmetic flags, DF, NT, AC, ID; TF is kept apart */
#define FIXED_FLAGS 0x202ull

/* The instruction being done. */
struct doing {
    struct tblock *t;
    struct insn in;
    uint8_t bytes[INSN_MAX_LEN];
};

static void illegal(struct tblock *t) {
    signals_raise(t, &(struct guest_fault){SIGILL_, 2 /* ILL_ILLOPN */, t->pc, TRAP_INVALID_OPCODE, 0});
}

static void protection(struct tblock *t, uint64_t err) {
    signals_raise(t, &(struct guest_fault){SIGSEGV_, SI_KERNEL_, 0, TRAP_PROTECTION, err});
}

/* A segment for ss that is not present. */
static void no_stack(struct tblock *t, uint64_t err) {
    signals_raise(t, &(struct guest_fault){SIGBUS_, SI_KERNEL_, 0, TRAP_STACK, err});
}

/* ---- memory; false: the fault is raised ---- */

static bool load(struct doing *d, void *to, gaddr from, size_t n) {
    memset(to, 0, 8);
    if (guest_read(to, from, n)) return true;
    signals_raise_copy_fault(d->t);
    return false;
}

/* All or nothing: of two pages the second is tried first. */
static bool store(struct doing *d, gaddr to, const void *from, size_t n) {
    gaddr second = PAGE_DOWN(to + n - 1);
    uint8_t byte;
    code_watch_before_kernel_write(to, n);
    bool whole = PAGE_DOWN(to) == second || (guest_read(&byte, second, 1) && guest_write(second, &byte, 1));
    if (whole && guest_write(to, from, n)) return true;
    d->t->thread->copy_fault.err |= PF_WRITE; /* the second page was read first */
    signals_raise_copy_fault(d->t);
    return false;
}

static void set_reg(struct tblock *t, int reg, uint64_t v, unsigned size) {
    if (size == 2)
        t->gpr[reg] = (t->gpr[reg] & ~0xffffull) | (uint16_t)v;
    else
        t->gpr[reg] = size == 4 ? (uint32_t)v : v;
}

/* ---- flags ---- */

static void set_flags(struct tblock *t, uint64_t v, unsigned size) {
    uint64_t may = size == 2 ? POPF_FLAGS & 0xffff : POPF_FLAGS;
    t->rflags = (t->rflags & ~may) | (v & may) | FIXED_FLAGS;
    t->trap_flag = v & RFLAGS_TF;
}

static void do_popf(struct doing *d) {
    struct tblock *t = d->t;
    unsigned size = operand_size(&d->in, d->bytes) == 2 ? 2 : 8;
    uint64_t v;
    if (!load(d, &v, t->gpr[RSP], size)) return;
    set_flags(t, v, size);
    t->gpr[RSP] += size;
    t->pc += d->in.len;
}

/* ---- ss ---- */

static bool load_ss(struct doing *d, uint16_t selector) {
    enum segment_state s = segment_load_ss(d->t, selector);
    if (s == SEGMENT_BAD) protection(d->t, selector & 0xfffc);
    if (s == SEGMENT_NOT_PRESENT) no_stack(d->t, selector & 0xfffc);
    return s == SEGMENT_GOOD;
}

/* ---- far transfers: those that stay in 64-bit code ---- */

static bool is_canonical(gaddr a) { return (int64_t)(a << 16) >> 16 == (int64_t)a; }

/* The code segment named in a far transfer is good; else the fault is raised. */
static bool good_target(struct doing *d, uint16_t cs, gaddr target, bool any_rpl) {
    uint16_t wanted = any_rpl ? cs | 3 : cs;
    if (wanted != GUEST_CS) { /* 32-bit code is refused like a segment that is not there */
        protection(d->t, cs & 0xfffc);
        return false;
    }
    if (!is_canonical(target)) {
        protection(d->t, 0);
        return false;
    }
    return true;
}

static void do_lret(struct doing *d) {
    struct tblock *t = d->t;
    unsigned size = operand_size(&d->in, d->bytes);
    uint64_t cs, pc;
    if (!load(d, &cs, t->gpr[RSP] + size, size) || !load(d, &pc, t->gpr[RSP], size)) return;
    if (!good_target(d, (uint16_t)cs, pc, false)) return;
    t->gpr[RSP] += 2 * size + (d->in.opcode == 0xca ? (uint16_t)d->in.imm : 0);
    t->pc = pc;
}

static void do_iret(struct doing *d) {
    struct tblock *t = d->t;
    unsigned size = operand_size(&d->in, d->bytes);
    uint64_t v[5]; /* pc, cs, flags, sp, ss */
    if (t->rflags & FLAG_NT) {
        protection(t, 0);
        return;
    }
    static const uint8_t order[] = {2, 1, 0, 4, 3}; /* shows when one of them is on another page */
    for (unsigned i = 0; i < 5; i++)
        if (!load(d, &v[order[i]], t->gpr[RSP] + order[i] * size, size)) return;
    if (!good_target(d, (uint16_t)v[1], v[0], false)) return;
    if (!load_ss(d, (uint16_t)v[4])) return;
    t->pc = v[0];
    set_flags(t, v[2], size);
    set_reg(t, RSP, v[3], size);
}

/* ljmp and lcall through memory. Only Intel knows 64-bit offsets. */
static void do_far_memory(struct doing *d) {
    struct tblock *t = d->t;
    unsigned size = operand_size(&d->in, d->bytes);
    if (size == 8 && !segment_has_wide_pointers()) size = 4;
    gaddr at = operand_address(t, &d->in, d->bytes);
    uint64_t cs, pc;
    if (!load(d, &pc, at, size) || !load(d, &cs, at + size, 2)) return;
    if (!good_target(d, (uint16_t)cs, pc, true)) return;
    if ((d->in.modrm >> 3 & 7) == 3) { /* lcall */
        uint64_t own = GUEST_CS, next = t->pc + d->in.len, sp = t->gpr[RSP];
        if (!store(d, sp - size, &own, size) || !store(d, sp - 2 * size, &next, size)) return;
        t->gpr[RSP] = sp - 2 * size;
    }
    t->pc = pc;
}

static void do_far(struct doing *d) {
    switch (d->in.opcode) {
    case 0xcf: do_iret(d); break;
    case 0xca:
    case 0xcb: do_lret(d); break;
    case 0xff: do_far_memory(d); break;
    default: /* sysenter: 64-bit programs get nothing from it */
        if (segment_has_wide_pointers())
            protection(d->t, 0);
        else
            illegal(d->t);
    }
}

/* ---- gs and ss ---- */

static void do_gsbase(struct doing *d) {
    struct tblock *t = d->t;
    bool wide = operand_size(&d->in, d->bytes) == 8;
    int reg = operand_rm(&d->in, d->bytes);
    if ((d->in.modrm >> 3 & 7) == 1) { /* rdgsbase */
        t->gpr[reg] = wide ? t->guest_gs : (uint32_t)t->guest_gs;
    } else {
        uint64_t base = wide ? t->gpr[reg] : (uint32_t)t->gpr[reg];
        if (!is_canonical(base)) {
            protection(t, 0);
            return;
        }
        t->guest_gs = base;
    }
    t->pc += d->in.len;
}

static bool is_ss(const struct insn *in) {
    return in->opcode == 0xb2 || ((in->opcode == 0x8c || in->opcode == 0x8e) && (in->modrm >> 3 & 7) == 2);
}

static bool load_segreg(struct doing *d, uint16_t selector) {
    if (is_ss(&d->in)) return load_ss(d, selector);
    if (segment_load_gs(d->t, selector)) return true;
    protection(d->t, selector & 0xfffc);
    return false;
}

/* mov from gs, mov to gs, push, pop, lgs; mov from ss, mov to ss, lss. */
static void do_segreg(struct doing *d) {
    struct tblock *t = d->t;
    const struct insn *in = &d->in;
    unsigned size = operand_size(in, d->bytes), slot = size == 2 ? 2 : 8;
    uint64_t v = is_ss(in) ? segment_ss(t) : t->guest_gs_selector;
    switch (in->opcode) {
    case 0x8c:
        if (!in->has_mem)
            set_reg(t, operand_rm(in, d->bytes), v, size);
        else if (!store(d, operand_address(t, in, d->bytes), &v, 2))
            return;
        break;
    case 0x8e:
        v = t->gpr[operand_rm(in, d->bytes)];
        if (in->has_mem && !load(d, &v, operand_address(t, in, d->bytes), 2)) return;
        if (!load_segreg(d, (uint16_t)v)) return;
        if (is_ss(in) && !t->debug_step) t->stepped = false; /* the processor traps behind the next one only */
        break;
    case 0xa8:
        if (!store(d, t->gpr[RSP] - slot, &v, slot)) return;
        t->gpr[RSP] -= slot;
        break;
    case 0xa9:
        if (!load(d, &v, t->gpr[RSP], slot) || !load_segreg(d, (uint16_t)v)) return;
        t->gpr[RSP] += slot;
        break;
    default: { /* lgs, lss */
        if (size == 8 && !segment_has_wide_pointers()) size = 4;
        gaddr at = operand_address(t, in, d->bytes);
        uint64_t offset;
        if (!load(d, &offset, at, size) || !load(d, &v, at + size, 2) || !load_segreg(d, (uint16_t)v)) return;
        set_reg(t, operand_reg(in, d->bytes), offset, size);
    }
    }
    t->pc += in->len;
}

/* ---- results that are recorded ---- */

static void execute_recorded(struct tblock *t) {
    struct recorded_insn in;
    struct ev_insn result;
    if (!recorded_insn_decode(t, &in)) return;
    if (unlikely(t->thread->tsc_faults) && recorded_insn_is_tsc(&in)) {
        recorded_insn_forbid(t);
        return;
    }
    recorded_insn_execute(&in, t, &result);
    recorded_insn_apply(&in, t, &result);
}

void (*special_recorded)(struct tblock *t) = execute_recorded;

/* ---- x87 ---- */

static void do_fpu_store(struct doing *d) {
    gaddr at = operand_address(d->t, &d->in, d->bytes);
    struct fpu_field f;
    if (fpu_image_field(d->t, &f, &d->in, d->bytes, at)) {
        uint64_t ip = 0;
        if (guest_read(&ip, f.at, f.size) && fpu_image_to_guest(&ip, f.size)) guest_write(f.at, &ip, f.size);
    }
    d->t->pc += d->in.len;
}

static void do_xsave(struct doing *d) {
    gaddr at = operand_address(d->t, &d->in, d->bytes);
    if (debug_is_on && !debug_writes(d->t, at, sigframe_extended_size())) return;
    code_watch_before_kernel_write(at, sigframe_extended_size());
    bool is_supervisor = d->in.opcode == 0xc7 && (d->in.modrm >> 3 & 7) == 5; /* xsaves */
    if (!sigframe_extended_mask())
        illegal(d->t);
    else if (at % 64 || is_supervisor || !is_canonical(at))
        protection(d->t, 0);
    else if (fpu_image_xsave(d->t, &d->in, d->bytes, at))
        d->t->pc += d->in.len;
    else
        signals_raise_copy_fault(d->t);
}

/* ---- no instruction ---- */

/* How many bytes at pc can be executed, as far as an instruction reaches. */
static size_t executable_bytes(gaddr pc) {
    gaddr at = pc;
    struct mapping m;
    while (at < pc + INSN_MAX_LEN && aspace_find(at, &m) && (m.prot & 4 /* PROT_EXEC */)) at = m.end;
    return MIN(at - pc, (gaddr)INSN_MAX_LEN);
}

static void invalid(struct doing *d, size_t n) {
    switch (decode_failure(d->bytes, n)) {
    case DECODE_CUT_OFF: special_fetch_fault(d->t, d->t->pc + n); break;
    case DECODE_TOO_LONG: protection(d->t, 0); break;
    default: illegal(d->t);
    }
}

/* The page is there, even if not for execution: the processor says so. */
static bool is_present(gaddr addr) {
    uint8_t in_core = 0;
    return SYS(mincore, PAGE_DOWN(addr), PAGE_SIZE, &in_core) == 0 && (in_core & 1);
}

void special_fetch_fault(struct tblock *t, gaddr addr) {
    if (!is_canonical(addr)) {
        protection(t, 0);
        return;
    }
    if (unlikely(shared_active) && shared_fault(t->thread, addr, PF_USER | PF_FETCH)) {
        if (unlikely(borrowed_any) && borrowed_pages(addr)) /* its file has no page there */
            signals_raise(t, &(struct guest_fault){SIGBUS_, BUS_ADRERR_, addr, TRAP_PAGE_FAULT, PF_USER | PF_FETCH});
        else
            engine_drop_block(t->pc); /* if it ends where the page begins */
        return;
    }
    struct mapping m;
    bool mapped = aspace_find(addr, &m);
    uint8_t byte;
    if (mapped && (m.prot & 4 /* PROT_EXEC */) && !guest_read(&byte, addr, 1)) { /* beyond the end of its file */
        signals_raise_copy_fault(t);
        return;
    }
    bool present =
        (int64_t)addr < 0 || (mapped && m.prot && is_present(addr)); /* the kernel's half always counts as present */
    signals_raise(t, &(struct guest_fault){SIGSEGV_, mapped ? 2 /* SEGV_ACCERR */ : 1, addr, TRAP_PAGE_FAULT,
                                           PF_USER | PF_FETCH | (present ? PF_PRESENT : 0)});
}

void special_bad_target(struct tblock *t) { protection(t, 0); }

void special_insn(struct tblock *t, enum special what) {
    if (what == SPECIAL_RECORDED) {
        special_recorded(t);
        return;
    }
    if (what == SPECIAL_PAUSE) {
        t->pc += 2;
        if (the_mode->spins) the_mode->spins(t);
        return;
    }
    struct doing d = {.t = t};
    size_t n = executable_bytes(t->pc);
    while (n && !guest_read(d.bytes, t->pc, n)) n--;
    if (!decode_insn(&d.in, d.bytes, n, t->pc)) {
        invalid(&d, n);
        return;
    }
    switch (what) {
    case SPECIAL_INT:
        t->stepped = false;
        legacy_int80(t, d.in.len);
        break;
    case SPECIAL_FAR: do_far(&d); break;
    case SPECIAL_GSBASE: do_gsbase(&d); break;
    case SPECIAL_SEGREG: do_segreg(&d); break;
    case SPECIAL_POPF: do_popf(&d); break;
    case SPECIAL_FPU_STORE: do_fpu_store(&d); break;
    case SPECIAL_XSAVE: do_xsave(&d); break;
    case SPECIAL_XBEGIN: /* every transaction aborts at once */
        t->gpr[RAX] = 0;
        t->pc = d.in.target;
        break;
    default: engine_drop_block(t->pc); /* it has become an instruction */
    }
}
