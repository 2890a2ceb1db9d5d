#include "engine/build.h"
#include "inproc/str.h"

#define MAX_CONTINUES 10 /* conditional branches and calls that a block goes on behind */
#define UNROLL_MOST 12   /* instructions in the body of a loop that is worth copies */

bool build_is_intercepted(const struct insn *in) {
    switch (in->cls) {
    case INSN_CPUID: return true; /* a hypervisor takes longer to answer it than we do */
    case INSN_RDTSC:
    case INSN_RDTSCP:
    case INSN_RDRAND:
    case INSN_XGETBV:
    case INSN_RDPID:
    case INSN_RDPRU:
    case INSN_LSL: return the_policy->intercept;
    default: return false;
    }
}

static bool ends_block(const struct insn *in) {
    if (build_is_intercepted(in)) return true;
    switch (in->cls) {
    case INSN_PAUSE: return the_policy->intercept;
    case INSN_JMP:
    case INSN_JMP_IND:
    case INSN_RET:
    case INSN_SYSCALL:
    case INSN_INT:
    case INSN_FAR:
    case INSN_XBEGIN:
    case INSN_GSBASE:
    case INSN_SEGREG:
    case INSN_XSAVE:
    case INSN_FPU_STORE:
    case INSN_POPF: return true;
    default: return false;
    }
}

static bool goes_on_behind(const struct insn *in) {
    return in->cls == INSN_JCC || in->cls == INSN_CALL || in->cls == INSN_CALL_IND || in->cls == INSN_LOOP;
}

static bool decode_at(struct build *b, struct insn *in, gaddr pc, gaddr at, gaddr code_end) {
    uint8_t *copy = b->bytes + (at - pc);
    size_t avail = MIN(code_end - at, (gaddr)INSN_MAX_LEN);
    memcpy(copy, (const void *)at, avail);
    return decode_insn(in, copy, avail, at);
}

bool build_has_break(gaddr pc) { return engine_host.has_break && engine_host.has_break(pc); }

static bool jumps_back(const struct insn *in) { return (in->cls == INSN_JCC || in->cls == INSN_JMP) && ticks_at(in); }

/* What a copy may hold: nothing that has a place of its own, like the landing of a return. */
static bool may_be_copied(const struct insn *in) { return in->cls == INSN_PLAIN || in->cls == INSN_JCC; }

/* The block ends with the return at `at`: whether that is a tick. Only bytes of its own page are asked, which the block is dropped with. */
static void look_before_return(struct build *b, gaddr pc, gaddr at) {
    gaddr from = MAX(at - RETURN_LOOKS_BACK, PAGE_DOWN(at));
    uint8_t bytes[RETURN_LOOKS_BACK];
    b->n_before = from < pc ? (uint8_t)(pc - from) : 0;
    memcpy(b->before, (const void *)(pc - b->n_before), b->n_before);
    memcpy(bytes, b->before, b->n_before);
    memcpy(bytes + b->n_before, b->bytes + (from + b->n_before - pc), at - from - b->n_before);
    b->returns_pushed = ticks_at_return(bytes, at - from);
}

bool build_gather(struct build *b, gaddr pc, int limit) {
    struct code_range code;
    if (!engine_host.code_at(pc, &code)) return false;
    int continues = 0, max_continues = code.checked ? 0 : MAX_CONTINUES;
    b->checked = code.checked;
    b->watched = code.watched;
    b->patience = code.patience;
    b->returns_pushed = false;
    b->n_before = 0;
    gaddr at = pc,
          known =
              0; /* from `known` on, the code is translated already; it is left out unless it is all of a small loop */
    int n_known = 0;
    b->falls_out = true;
    for (b->n = 0; b->n < limit; b->n++) {
        struct insn *in = &b->insn[b->n];
        if (b->n > 0) {
            if (build_has_break(at)) break;
            if (!known && cache_find(at)) known = at, n_known = b->n;
            if (known && (!the_policy->ticks || b->checked || b->n >= UNROLL_MOST)) break;
            if (PAGE_DOWN(at) > PAGE_DOWN(pc) + PAGE_SIZE) break; /* at most two pages: see struct block */
            if (at >= code.end && cache_kept_region(pc)) break;   /* a file's kept code stays within the file */
            if (at >= code.end && (!engine_host.code_at(at, &code) || code.checked != b->checked)) break;
            b->watched |= code.watched;
        }
        if (!decode_at(b, in, pc, at, code.end)) {
            /* it may go on in the next mapping */
            struct code_range more;
            if (code.end - at >= INSN_MAX_LEN || !engine_host.code_at(code.end, &more) ||
                !decode_at(b, in, pc, at, more.end)) {
                in->cls = INSN_INVALID;
                in->pc = at;
                in->len = 1;
            } else if (more.watched && !more.checked) {
                b->watched = true;
            } else if (more.checked && !b->checked) { /* an instruction on two pages: either may change unseen */
                if (b->n > 0) break;
                b->checked = true;
                b->patience = more.patience;
                max_continues = 0;
            }
        }
        if (in->cls == INSN_INVALID && b->n > 0) break;
        if (b->n > 0 && PAGE_DOWN(at + in->len - 1) > PAGE_DOWN(pc) + PAGE_SIZE) break;
        if (known && jumps_back(in) && in->target == pc) {
            known = 0;
            at += in->len;
            b->n++;
            b->falls_out = in->cls == INSN_JCC;
            break;
        }
        if (known && !may_be_copied(in)) break;
        if (b->n > 0 && (in->cls == INSN_CALL || in->cls == INSN_CALL_IND)) {
            b->known_call = cache_find_call(at);
            if (b->known_call) break;
        }
        if (in->cls == INSN_RET && !in->imm && the_policy->ticks) look_before_return(b, pc, at);
        at += in->len;
        if (in->cls == INSN_INVALID || ends_block(in)) {
            b->n++;
            b->falls_out = false;
            break;
        }
        if ((goes_on_behind(in) && ++continues > max_continues) || (b->checked && in->store_size)) {
            b->n++;
            break;
        }
    }
    if (known) {
        b->n = n_known;
        at = known;
        b->falls_out = true;
    }
    b->end = at;
    return true;
}

/* Integer instructions between registers cannot fault, except division. Everything else may: memory, x87, vectors. */
static bool may_fault(const struct insn *in) {
    static const uint8_t safe[] = {0x01, 0x03, 0x09, 0x0b, 0x11, 0x13, 0x19, 0x1b, 0x21, 0x23, 0x29, 0x2b, 0x31, 0x33,
                                   0x39, 0x3b, 0x63, 0x83, 0x81, 0x85, 0x84, 0x89, 0x8b, 0x8d, 0xc1, 0xd1, 0xc7, 0x90};
    if (in->encoding != ENC_LEGACY || in->prefix_len || in->has_mem || in->push_size || in->pop_size) return true;
    if (in->opcode_off != (in->has_rex ? 1 : 0)) return true; /* two-byte opcodes */
    if (in->opcode >= 0xb8 && in->opcode <= 0xbf) return false;
    for (size_t i = 0; i < sizeof safe; i++)
        if (in->opcode == safe[i]) return false;
    return true;
}

void build_find_liveness(struct build *b) {
    struct liveness live = {0xffff, FLAGS_ARITH};
    b->live[b->n] = live;
    for (int i = b->n - 1; i >= 0; i--) {
        const struct insn *in = &b->insn[i];
        if (in->cls != INSN_PLAIN || may_fault(in)) { /* a handler sees everything; the other side may need it */
            live = (struct liveness){0xffff, FLAGS_ARITH};
        } else {
            live.regs = (uint16_t)((live.regs & ~in->gpr_kill) | in->gpr_read);
            live.flags = (uint8_t)((live.flags & ~in->flags_kill) | in->flags_read);
        }
        b->live[i] = live;
    }
}

/* ---- loops ---- */

/* The body of the loop that instruction `last` jumps back in, as the number of its first instruction; -1: none that is to have copies. */
static int loop_head(const struct build *b, int last) {
    const struct insn *jump = &b->insn[last];
    if (!jumps_back(jump)) return -1;
    for (int i = last; i >= 0 && i > last - UNROLL_MOST; i--) {
        if (i < last && (!may_be_copied(&b->insn[i]) || b->tick[i].repeats)) return -1; /* the inner one has copies */
        if (b->insn[i].pc == jump->target) return i;
    }
    return -1;
}

/* Behind the loop [head, last] come copies of it; all but the last one go on with the next. Returns how many instructions came. */
static int copy_loop(struct build *b, int head, int last) {
    int len = last - head + 1, copies = MIN((MAX_INSNS - b->n) / len, TICK_COUNTERS - 1);
    memmove(&b->insn[last + 1 + copies * len], &b->insn[last + 1], sizeof *b->insn * (size_t)(b->n - last - 1));
    for (int k = 0; k < copies; k++) {
        memcpy(&b->insn[last + 1 + k * len], &b->insn[head], sizeof *b->insn * (size_t)len);
        b->tick[last + k * len].repeats = true;
        b->tick[last + (k + 1) * len].counter = (uint8_t)(k + 1);
    }
    b->n += copies * len;
    return copies * len;
}

void build_unroll(struct build *b) {
    memset(b->tick, 0, sizeof b->tick);
    if (!the_policy->ticks || b->checked || b->exact_flags) return;
    for (int i = 0; i < b->n; i++) {
        int head = loop_head(b, i);
        bool is_left = head == 0 && build_has_break(b->insn[0].pc); /* in each round */
        if (head >= 0 && !is_left)
            i += copy_loop(b, head, i);
        else
            b->tick[i].counter = b->insn[i].cls == INSN_CALL ? 1 : 2 + (b->insn[i].pc >> 4 & 1);
    }
}
