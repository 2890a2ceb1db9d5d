/* From an interrupted place in the cache back to exact guest state. */
#include "engine/engine.h"
#include "engine/flags.h"

/* Offsets inside the return sequence of translate_insn.c: mov (9 bytes), movzwl (4), push, ret. */
#define RET_PUSH_OFF 13

#define FLAGS_OF_LAHF 0xd5ull
#define FLAGS_ALL 0x8d5ull

static int insn_at(const struct block *b, uint64_t host_pc) {
    uint32_t off = (uint32_t)(host_pc - (uint64_t)b->host);
    int lo = 0, hi = b->n_insns - 1;
    while (lo < hi) {
        int mid = (lo + hi + 1) / 2;
        if (b->map[mid].host_off <= off)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

bool fault_at_boundary(uint64_t host_pc) {
    struct block *b = cache_block_at(host_pc);
    if (!b) return false;
    return (uint64_t)b->host + b->map[insn_at(b, host_pc)].host_off == host_pc;
}

static bool is_int(uint8_t opcode) { return opcode == 0xcc || opcode == 0xcd || opcode == 0xf1; }

gaddr fault_guest_pc(uint64_t host_pc) {
    struct block *b = cache_block_at(host_pc);
    return b ? b->pc + b->map[insn_at(b, host_pc)].guest_off : 0;
}

bool fault_is_own_store(uint64_t host_pc) {
    const struct block *b = cache_block_at(host_pc);
    if (!b) return true;
    int kind = b->map[insn_at(b, host_pc)].spill & ~SPILL_TICKED;
    return (kind == SPILL_CALL || kind == SPILL_CALL_IND) && emit_is_store_stack((const uint8_t *)host_pc);
}

/* enter_exit.S */
extern char rt_tick[], rt_indirect_tick[];

bool fault_is_tick(struct tblock *t, uint64_t host_pc, uint64_t *to, uint64_t *rcx) {
    if (!the_policy->ticks || !cache_contains(host_pc)) return false;
    struct block *b = cache_block_at(host_pc);
    if (!b) { /* in front of a block, where indirect transfers arrive */
        *rcx = t->s0;
        *to = (uint64_t)rt_indirect_tick;
        return true;
    }
    const struct insn_map *m = &b->map[insn_at(b, host_pc)];
    if (m->spill == SPILL_INT) return false; /* the guest's own */
    int counter = 0;
    while (counter < TICK_COUNTERS && *ticks_counter(t, counter) >= 0) counter++;
    if (counter ==
        TICK_COUNTERS) { /* the kind that keeps flags: rcx was 0, and the trap is part of the counter's address */
        counter = (*(const int32_t *)host_pc - TB_TICKS(0)) / (TB_TICKS(1) - TB_TICKS(0));
        *rcx = t->s2;
    }
    t->pc = b->pc + m->guest_off;
    t->exit_index = (uint64_t)counter;
    *to = (uint64_t)rt_tick;
    return true;
}

/* A checked block could not read its guest bytes: emit_check has put rcx, rax with the flags, and maybe rdx elsewhere. */
static void undo_check(struct tblock *t, uint64_t host_pc) {
    int base;
    if (!emit_is_cmp_memory((const uint8_t *)host_pc, RCX, &base)) return;
    uint64_t saved = t->gpr[RAX];
    t->rflags = (t->rflags & ~FLAGS_ALL) | (saved >> 8 & FLAGS_OF_LAHF) | (saved & 1) << 11 /* OF */;
    t->gpr[RAX] = t->s3;
    t->gpr[RCX] = t->s2;
    if (base == RDX) t->gpr[RDX] = t->s1;
}

static enum fault_where recover(struct tblock *t, const struct fault_regs *regs) {
    struct block *b = cache_block_at(regs->host_pc);
    if (!b) return FAULT_NOT_CACHE;
    int i = insn_at(b, regs->host_pc);
    const struct insn_map *m = &b->map[i];
    uint64_t off = regs->host_pc - (uint64_t)b->host - m->host_off;
    for (int r = 0; r < 16; r++) t->gpr[r] = regs->gpr[r];
    t->rflags = regs->rflags;
    t->pc = b->pc + m->guest_off;
    if (off == 0) return FAULT_AT_BOUNDARY;
    bool ticked = m->spill & SPILL_TICKED;
    if (off < m->lead || (off == m->lead && !ticked)) {
        if (b->checked && i == 0) undo_check(t, regs->host_pc);
        return FAULT_INSIDE;
    }
    off -= m->lead;
    if (ticked) t->ticks_left_0++; /* it counts when it is done */
    switch (m->spill & ~SPILL_TICKED) {
    case SPILL_SCRATCH: t->gpr[m->scratch] = t->s2; break;
    case SPILL_RCX: t->gpr[RCX] = t->s0; break;
    case SPILL_CALL: { /* the guest's push is done, the host's failed: the call has happened */
        struct insn in;
        if (*(const uint8_t *)regs->host_pc != CALL_REL32 || !decode_executed(&in, t->pc)) break;
        t->pc = in.target;
        t->ticks_left_0 -= ticked;
        return FAULT_NOT_THE_GUESTS;
    }
    case SPILL_CALL_IND: {
        t->gpr[RCX] = t->s0;
        gaddr next = i + 1 < b->n_insns ? b->pc + b->map[i + 1].guest_off : b->end;
        /* the host's push is the last instruction that can fault, right in front of the site */
        struct site s = cache_find_site(next);
        if (!s.host || regs->host_pc + 7 != (uint64_t)s.host) break;
        t->pc = t->s1;
        if (the_policy->ticks) ticks_take(t); /* counted where it arrives, which it does this way */
        return FAULT_NOT_THE_GUESTS;
    }
    case SPILL_RET:
        t->gpr[RCX] = t->s0;
        if (off < RET_PUSH_OFF) break;
        t->pc = *(uint64_t *)t->gpr[RSP];
        t->gpr[RSP] += 8;
        t->ticks_left_0 -= ticked;
        return FAULT_NOT_THE_GUESTS;
    case SPILL_GS_BASE: t->gpr[m->scratch] -= t->guest_gs; break;
    case SPILL_INT:
        if (!is_int(*(const uint8_t *)regs->host_pc)) t->pc += m->scratch;
        break;
    default: break;
    }
    return FAULT_INSIDE;
}

enum fault_where fault_to_guest(struct tblock *t, const struct fault_regs *regs) {
    enum fault_where where = recover(t, regs);
    if (the_policy->ticks && where != FAULT_NOT_CACHE) flags_settle(t, t->pc);
    return where;
}
