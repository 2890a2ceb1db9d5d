/* What the debugger's agent remembers of the instructions of a stretch that it steps through, each before it is executed: registers,
 * and for those who go back through them what their stores overwrite. */
#include "engine/store_filter.h"
#include "inproc/str.h"
#include "sphere/aspace.h"
#include "sphere/debug_parts.h"
#include "sphere/debug_state.h"
#include "sphere/gate.h"
#include "sphere/operand.h"
#include "sphere/shared.h"

#define AROUND_RSP 24 /* below it calls and returns zero words of ours; above it is the return address */

void past_hide_host_word(struct thread *t) {
    uint64_t word, none = 0, at = t->tb->gpr[RSP] - 8;
    if (!aspace_is_runtime(at, 8) && !shared_is_closed(at) && guest_read(&word, at, 8) && word && cache_contains(word))
        guest_write(at, &none, 8);
}

/* Where the instruction stores; *n 0: nowhere. False: not known. */
static bool find_store(const struct tblock *tb, const struct insn *in, const uint8_t *code, gaddr *at, size_t *n) {
    switch (in->cls) {
    case INSN_CALL:
    case INSN_CALL_IND:
    case INSN_RET:
        *at = tb->gpr[RSP] - AROUND_RSP;
        *n = AROUND_RSP + 8;
        return true;
    case INSN_PLAIN:
    case INSN_PAUSE:
    case INSN_JMP:
    case INSN_JCC:
    case INSN_LOOP:
    case INSN_JMP_IND: break;
    default: return false;
    }
    switch (store_kind(in, n)) {
    case STORE_NONE: *n = 0; return true;
    case STORE_PUSH: *at = tb->gpr[RSP] - *n; return true;
    case STORE_STRING: *at = tb->gpr[RDI]; return true;
    case STORE_OPERAND:
    case STORE_FS: *at = operand_address(tb, in, code); return true;
    default: return false;
    }
}

static void remember_store(struct worker_past *p, const struct tblock *tb) {
    uint8_t code[INSN_MAX_LEN];
    struct insn in;
    gaddr at = 0;
    size_t n = 0, got = state_read(tb->pc, code, sizeof code);
    bool known = got && decode_insn(&in, code, got, tb->pc) && find_store(tb, &in, code, &at, &n);
    p->store_len = WORKER_STORE_UNKNOWN;
    if (!known || n > sizeof p->old || state_read(at, p->old, n) != n) return;
    p->store_at = at;
    p->store_len = (uint32_t)n;
}

void past_remember(struct thread *t, const struct worker_place *here) {
    const struct tblock *tb = t->tb;
    struct insn in;
    if (debug_run.trace_writes && (!debug_decode(&in, tb->pc) || !(in.gpr_write & debug_run.trace_writes))) return;
    struct worker_past *p = (struct worker_past *)debug_slot->data + debug_slot->stop.traced++ % WORKER_PAST;
    p->ticks = here->ticks;
    p->steps = here->steps;
    p->pc = tb->pc;
    p->rflags = tb->rflags;
    memcpy(p->gpr, tb->gpr, sizeof p->gpr);
    if (debug_run.trace != TRACE_STORES) return;
    past_hide_host_word(t);
    remember_store(p, tb);
}

bool past_ends(void) {
    uint64_t n = debug_slot->stop.traced;
    const struct worker_past *last = (const struct worker_past *)debug_slot->data + (n - 1) % WORKER_PAST;
    return n >= WORKER_PAST || (n && last->store_len == WORKER_STORE_UNKNOWN);
}
