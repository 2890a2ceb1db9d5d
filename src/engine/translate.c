/* Translation: guest instructions -> a block in the code cache.
 *
 * A block is a straight run of guest code: it goes on behind conditional branches and calls and ends at an unconditional
 * transfer, at code that is translated already, or at a limit. Between any two guest instructions all guest registers,
 * flags and memory are in place; only inside the sequence of one instruction may rcx or a scratch register be away.
 *
 * How control moves (K = guest address of the destination, site = host code behind a translated call):
 *
 *   call f        push $K; call f.entry[CALL]; site: ...
 *   entry[CALL]   lea 8(%rsp),%rsp; movq $0,-8(%rsp)        the host's return address is dropped: it only fed the
 *                                                           return predictor
 *   ret           mov %rcx,%gs:s0; movzwl (%rsp),%ecx; push TABLE_RET(,%rcx,8); ret       one of four tables: tables.h
 *   site          pop %rcx; expect K, else ret_fail; movq $0,-16(%rsp); mov %gs:s0,%rcx
 *   jmp *x        mov %rcx,%gs:s0; mov x,%rcx; mov %rcx,%gs:s1; movzwl %cx,%ecx; jmp *TABLE_JMP(,%rcx,8)
 *   entry[JMP_IND]   mov %gs:s1,%rcx; expect K, else jmp_fail; mov %gs:s0,%rcx
 *   call *x       as jmp *x, with rorx $4,%ecx,%ecx before movzwl and push $K in front of call *TABLE_CALL(,%rcx,8); site
 *   entry[CALL_IND]  entry[CALL] then entry[JMP_IND]
 *   expect K      lea 1-K(%rcx),%rcx; loop 1b, where 1: jmp fail is a little in front, for several; a branch that is never taken
 *                 needs no room in the predictor. Where `loop` is slow: lea -K(%rcx),%rcx; jrcxz 1f; jmp fail; 1:
 *
 *   tick          decl %gs:counter; js trap (for a jump: jns destination; int3) where the scan of flags.h finds flags dead at
 *                 the destination; else
 *                 mov %rcx,%gs:s2; mov %gs:counter,%ecx; jrcxz trap; lea -1(%rcx),%rcx; mov %ecx,%gs:counter; mov %gs:s2,%rcx
 *                 in front of direct transfers; of indirect ones at the entry they arrive at, where more is known.
 *                 The trap is a byte of the counter's address (tblock.h): sequences are short, and a budget seldom ends
 *
 * Nothing else here touches flags: whoever is reached by mistake (two targets share a table slot) must leave no trace. The stack
 * slots that held host addresses are zeroed, so that what a program finds below its stack pointer does not depend on us. */
#include "engine/build.h"
#include "engine/flags.h"
#include "inproc/fmt.h"
#include "inproc/str.h"

int trace_level;
uint64_t single_from = UINT64_MAX;

/* ---- entries ---- */

static void emit_drop_host_word(struct emitter *e, bool zero) {
    emit_lea(e, RSP, RSP, 8);
    if (zero) emit_zero_stack(e, -8);
}

/* Verifies the target of an indirect transfer in front of a block. */
static void emit_verify_target(struct emitter *e, const struct block *b, uint8_t *near, const uint8_t *fail) {
    emit_load_tb(e, RCX, TB_S1);
    emit_expect_pc(e, b->pc, near, fail);
    if (the_policy->ticks && b->flags_dead) {
        emit_dec_ticks(e, TB_TICKS(TICK_INDIRECT));
        emit_trap_if_negative(e);
    } else if (the_policy->ticks) {
        emit_load_ticks(e, TB_TICKS(TICK_INDIRECT));
        emit_trap_if_no_rcx(e);
        emit_lea(e, RCX, RCX, -1);
        emit_store_ticks(e, TB_TICKS(TICK_INDIRECT));
    }
    if (b->rcx_live || (the_policy->ticks && !b->flags_dead)) emit_load_tb(e, RCX, TB_S0);
}

static bool is_verified(enum entry_kind kind) { return kind == ENTRY_JMP_IND || kind == ENTRY_CALL_IND; }

/* Returns the entry: what it jumps back to lies in front. */
static uint8_t *emit_entry(struct emitter *e, const struct region *r, const struct block *b, enum entry_kind kind) {
    const uint8_t *fail = kind == ENTRY_CALL_IND ? r->tramp_call_fail : r->tramp_jmp_fail;
    uint8_t *near = loop_is_quick && is_verified(kind) ? e->p : NULL;
    if (near) emit_jmp_fixed(e, fail);
    uint8_t *at = e->p;
    if (kind == ENTRY_CALL || kind == ENTRY_CALL_IND)
        emit_drop_host_word(e, kind == ENTRY_CALL_IND || !b->pushes_first);
    if (is_verified(kind)) emit_verify_target(e, b, near, fail);
    return at;
}

/* ---- checked blocks ---- */

/* One less of what rcx is made to point to; returns the jump that is taken below zero. */
static uint8_t *emit_count_down(struct emitter *e, const int32_t *what) {
    emit_mov_reg_imm(e, RCX, (uint64_t)what);
    emit_dec_mem(e, RCX);
    return emit_jcc(e, 8 /* s */, NULL);
}

/* Compares the guest bytes, and those in front that matter, with what was translated; leaves the cache when they differ. All flags are kept: what is there
 * now may need some that the old code did not. */
static void emit_check(struct build *b, gaddr pc) {
    struct emitter *e = &b->e;
    uint8_t *fail[(MAX_INSNS * INSN_MAX_LEN) / 4 + 4];
    int n_fail = 0;
    size_t len = b->n_before + (b->end - pc);
    gaddr from = pc - b->n_before;
    emit_store_tb(e, RCX, TB_S2);
    emit_store_tb(e, RAX, TB_S3);
    emit_save_flags_rax(e);
    uint8_t *worn = b->patience ? emit_count_down(e, b->patience) : NULL;
    for (size_t at = 0; at < len;) {
        size_t size = len - at >= 8 ? 8 : len - at >= 4 ? 4 : len - at >= 2 ? 2 : 1;
        uint64_t want = 0;
        for (size_t k = 0; k < size; k++)
            ((uint8_t *)&want)[k] = at + k < b->n_before ? b->before[at + k] : b->bytes[at + k - b->n_before];
        emit_mov_reg_imm(e, RCX, want);
        uint8_t *start = e->p;
        if (!emit_cmp_rip_reg(e, RCX, (int)size, from + at)) { /* no window was free near the code */
            e->p = start;
            emit_store_tb(e, RDX, TB_S1);
            emit_mov_reg_imm(e, RDX, from + at);
            emit_cmp_reg_mem(e, RCX, (int)size, RDX);
            emit_load_tb(e, RDX, TB_S1);
        }
        fail[n_fail++] = emit_jcc(e, 5 /* ne */, NULL);
        at += size;
    }
    uint8_t *ok = emit_jmp(e, NULL);
    for (int i = 0; i < n_fail && !e->full; i++) emit_set_rel32(fail[i], e->p);
    emit_undo_flags_test(e);
    emit_special_exit(e, pc, TB_FN_SPECIAL, SPECIAL_STALE);
    if (worn && !e->full) {
        emit_set_rel32(worn, e->p);
        emit_undo_flags_test(e);
        emit_special_exit(e, pc, TB_FN_SPECIAL, SPECIAL_WORN);
    }
    if (!e->full) emit_set_rel32(ok, e->p);
    emit_undo_flags_test(e);
}

/* ---- blocks ---- */

static uint8_t *host_of(const struct build *b, const uint8_t *host, gaddr pc) {
    for (int i = 0; i < b->n; i++)
        if (b->insn[i].pc == pc) return (uint8_t *)host + b->map[i].host_off;
    return NULL;
}

static bool finish_exits(struct build *b, struct block *blk) {
    struct exit *x = blk->exits;
    for (int i = 0; i < b->n_exits; i++) {
        struct pending_exit *p = &b->exits[i];
        uint8_t *inside = p->kind == ENTRY_PLAIN ? host_of(b, blk->host, p->target) : NULL;
        if (b->checked && inside != blk->host) inside = NULL; /* past the check only from the top */
        /* what goes round may wait for somebody to change the code (Java patches jumps to themselves so): jumps back are led out of the
         * block when that is dropped. So are jumps to themselves anywhere. */
        if (inside && inside <= p->rel32 && ((b->watched && !b->checked) || (b->n == 1 && p->target == blk->pc)))
            inside = NULL;
        if (inside) {
            emit_set_rel32(p->rel32, inside);
            continue;
        }
        *x = (struct exit){.target = p->target, .rel32 = p->rel32, .from = blk, .kind = (uint8_t)p->kind};
        struct emitter stub = {.p = x->stub_code, .end = x->stub_code + sizeof x->stub_code};
        emit_store_tb_imm32(&stub, TB_EXIT_INDEX, (uint32_t)((uint8_t *)x - b->r->base));
        emit_jmp(&stub, b->r->tramp_exit);
        CHECK(!stub.full);
        emit_set_rel32(p->rel32, x->stub_code);
        x++;
    }
    blk->n_exits = (uint16_t)(x - blk->exits);
    for (int i = 0; i < b->n_literals; i++) {
        emit_nops(&b->e, -(uintptr_t)b->e.p & 7);
        if (b->e.end - b->e.p < 8) return false;
        emit_set_rel32(b->literals[i].rel32, b->e.p);
        emit_bytes(&b->e, &b->literals[i].value, 8);
    }
    return !b->e.full;
}

static bool first_is_push(const struct build *b) {
    int i = 0;
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    if (b->n > 1 && b->insn[0].len == 4 && memcmp((void *)b->insn[0].pc, endbr64, 4) == 0) i = 1;
    const struct insn *in = &b->insn[i];
    return in->cls == INSN_PLAIN && in->push_size == 8 && in->opcode >= 0x50 && in->opcode <= 0x57 && in->len <= 2;
}

/* In front of the first instruction. */
static void emit_break(struct build *b, const struct block *blk) {
    emit_store_tb_u64(&b->e, TB_BREAK_BLOCK, (uint64_t)blk);
    emit_special_exit(&b->e, b->insn[0].pc, TB_FN_SPECIAL, SPECIAL_BREAK);
    b->break_len = (uint8_t)(b->e.p - b->host);
}

static void emit_body(struct build *b, const struct block *blk) {
    for (int i = 0; i < b->n; i++) {
        b->map[i].host_off = (uint16_t)(b->e.p - b->host);
        b->map[i].guest_off = (uint16_t)(b->insn[i].pc - b->insn[0].pc);
        if (i == 0 && build_has_break(b->insn[0].pc)) emit_break(b, blk);
        if (i == 0 && b->checked) emit_check(b, b->insn[0].pc);
        emit_insn(b, i);
        size_t len = (size_t)(b->e.p - b->host) - b->break_len;
        if (i == 0 && b->break_len && !b->checked && len <= UINT8_MAX) b->broken_len = (uint8_t)len;
    }
}

static bool has_calls(const struct build *b) {
    for (int i = 0; i < b->n; i++)
        if (b->insn[i].cls == INSN_CALL || b->insn[i].cls == INSN_CALL_IND) return true;
    return false;
}

static uint8_t *aligned_behind(const uint8_t *p, size_t lead) {
    return (uint8_t *)(((uintptr_t)p + lead + 15) & ~15ull) - lead;
}

static struct block *build_block(struct build *b, gaddr pc, enum entry_kind reason) {
    struct region *r = b->r;
    uint8_t *meta_mark = r->meta_next;
    struct block *blk = cache_meta(r, sizeof *blk);
    struct insn_map *map = blk ? cache_meta(r, sizeof *map * (size_t)b->n) : NULL;
    if (!map) return NULL;
    memset(blk, 0, sizeof *blk);
    bool with_fail = loop_is_quick && has_calls(b);
    size_t lead = JMP_FIXED_LEN * (size_t)(with_fail + (loop_is_quick && is_verified(reason)));
    b->e = (struct emitter){.p = aligned_behind(r->code_next, lead),
                            .end = MIN(r->meta_next - sizeof(struct exit) * MAX_EXITS, cache_code_end(r))};
    blk->pushes_first = first_is_push(b);
    blk->pc = pc;
    blk->checked = b->checked;
    /* what is there by then may be other code, or somebody looks */
    blk->rcx_live = b->checked || build_has_break(pc) || (b->live[0].regs & REG_BIT(RCX));
    blk->flags_dead = the_policy->ticks && !b->exact_flags && flags_are_dead(pc, pc);
    if (with_fail) {
        b->e.ret_fail = b->e.p;
        emit_jmp_fixed(&b->e, r->tramp_ret_fail);
    }
    uint8_t *prefix = emit_entry(&b->e, r, blk, reason);
    blk->end = b->end;
    blk->host = b->e.p;
    blk->entry[reason] = prefix;
    blk->entry[ENTRY_PLAIN] = blk->host;
    b->host = blk->host;
    emit_body(b, blk);
    if (b->falls_out) build_add_exit(b, emit_jmp(&b->e, NULL), b->end, ENTRY_PLAIN);
    blk->host_len = (uint32_t)(b->e.p - blk->host);
    blk->break_len = b->break_len;
    blk->broken_len = b->broken_len;
    blk->n_insns = (uint16_t)b->n;
    blk->map = map;
    memcpy(map, b->map, sizeof *map * (size_t)b->n);
    blk->exits = cache_meta(r, sizeof(struct exit) * (size_t)b->n_exits);
    if (b->e.full || !blk->exits || !finish_exits(b, blk)) {
        r->meta_next = meta_mark;
        return NULL;
    }
    return blk;
}

static void trace_block(const struct build *b, const struct block *blk) {
    say("block %lu: guest %lx-%lx host %lx+%x, %d instructions", cache_stats.blocks, blk->pc, blk->end,
        (uint64_t)blk->host, blk->host_len, b->n);
    if (trace_level < 2) return;
    for (int i = 0; i < b->n; i++) {
        char line[128];
        size_t at = 0;
        for (int k = 0; k < b->insn[i].len; k++)
            at += fmt_into(line + at, sizeof line - at, "%02x ", ((uint8_t *)b->insn[i].pc)[k]);
        say("  %lx  %s class %d -> %x", b->insn[i].pc, line, b->insn[i].cls, b->map[i].host_off);
    }
}

/* Called with cache_lock held. */
struct block *translate(gaddr pc, enum entry_kind reason) {
    struct build b; /* about 10 KB: runtime stacks are sized for it */
    b.n_exits = b.n_literals = b.n_sites = 0;
    b.known_call = NULL;
    b.break_len = b.broken_len = 0;
    memset(b.map, 0, sizeof b.map);
    if (!build_gather(&b, pc, cache_stats.blocks < single_from ? MAX_INSNS : 1)) return NULL;
    b.exact_flags = cache_stats.blocks >= single_from;
    build_unroll(&b);
    build_find_liveness(&b);
    b.r = build_has_break(pc) ? cache_region_apart(pc) : cache_region_for(pc);
    if (!b.r) return NULL; /* cache_is_full */
    struct block *blk = build_block(&b, pc, reason);
    CHECK(blk);
    if (unlikely(trace_level)) trace_block(&b, blk);
    cache_commit(b.r, blk, b.e.p);
    for (int i = 0; i < b.n_sites; i++) { /* whoever returns to one may fault in the block: it has to be known */
        if (!b.checked) cache_add_call(b.sites[i].call_pc, blk);
        cache_add_site(b.sites[i].ret_pc, b.sites[i].site);
    }
    for (int i = 0; i < blk->n_exits; i++) {
        struct exit *x = &blk->exits[i];
        struct block *to = cache_find(x->target);
        if (b.known_call && x->target == b.end && x->kind == ENTRY_PLAIN)
            cache_link(x, b.known_call, cache_insn_host(b.known_call, b.end));
        else if (to && to->entry[x->kind])
            cache_link(x, to, to->entry[x->kind]);
    }
    return blk;
}

/* Where more code for a block goes: what is kept must not lead to what is not. */
static struct region *region_beside(const struct block *b) {
    return b->is_kept ? cache_region_for(b->pc) : cache_region_apart(b->pc);
}

uint8_t *translate_entry(struct block *b, enum entry_kind kind) {
    if (b->entry[kind]) return b->entry[kind];
    struct region *r = region_beside(b);
    if (!r || b->dead) return NULL; /* making room may have evicted it */
    struct stray *stray = region_holds(r, b) ? NULL : cache_meta(r, sizeof *stray);
    if (!stray && !region_holds(r, b)) return NULL;
    struct emitter e = {.p = r->code_next, .end = cache_code_end(r)};
    uint8_t *at = emit_entry(&e, r, b, kind);
    emit_jmp_anywhere(&e, b->host);
    r->code_next = e.p;
    if (stray) cache_note_stray(r, stray, b->pc);
    b->entry[kind] = at;
    return at;
}

uint8_t *translate_ret_entry(struct block *b) {
    struct region *r = region_beside(b);
    if (!r || b->dead) return NULL;
    struct emitter e = {.p = r->code_next, .end = cache_code_end(r)};
    uint8_t *at = e.p;
    emit_site(&e, r, b->pc, b->rcx_live);
    uint8_t *cont = e.p;
    emit_jmp_anywhere(&e, b->host);
    r->code_next = e.p;
    cache_add_site(b->pc, (struct site){at, cont});
    return at;
}
