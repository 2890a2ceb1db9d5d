/* A block while it is being translated, and the parts of translation for each other: gather.c (which instructions it has),
 * translate_insn.c (one instruction), translate_ticks.c (counting), translate.c (entries, checks, the whole). */
#ifndef REPRISE_BUILD_H
#define REPRISE_BUILD_H

#include "engine/engine.h"
#include "inproc/layout.h"

#define MAX_INSNS 64
#define MAX_EXITS (MAX_INSNS + 2)
#define RETURN_LOOKS_BACK 7 /* the longest push, without prefixes */

struct pending_exit {
    gaddr target;
    uint8_t *rel32;
    enum entry_kind kind;
};

struct pending_literal {
    uint8_t *rel32;
    uint64_t value;
};

struct build {
    struct emitter e;
    struct region *r;
    uint8_t *host; /* where the instructions start */
    int n;
    gaddr end;                /* guest address behind the last instruction */
    struct block *known_call; /* the block runs into a call that this one holds */
    bool falls_out;           /* the last instruction may go on at `end` */
    bool checked;             /* verify the guest bytes at entry */
    bool watched;             /* another thread may drop the block while one is in it; see struct code_range */
    int32_t *patience;        /* how often; see struct code_range */
    uint8_t break_len;        /* see struct block */
    uint8_t broken_len;       /* likewise */
    bool exact_flags;         /* single instructions are to leave exact state */
    bool returns_pushed;      /* the last instruction is a plain return that is a tick */
    uint8_t n_before;         /* guest bytes in front of the block that this depends on */
    uint8_t before[RETURN_LOOKS_BACK];
    int n_exits, n_literals, n_sites;
    struct insn insn[MAX_INSNS];
    uint8_t bytes[MAX_INSNS * INSN_MAX_LEN + 16]; /* the guest bytes as decoded: another thread may be writing them */
    struct insn_map map[MAX_INSNS];
    struct {
        uint8_t counter; /* which one its tick is taken from */
        bool repeats;    /* a jump back whose destination follows, as a copy */
    } tick[MAX_INSNS];
    struct liveness live[MAX_INSNS + 1]; /* before each instruction */
    struct pending_exit exits[MAX_EXITS];
    struct pending_literal literals[MAX_INSNS];
    struct {
        gaddr call_pc, ret_pc;
        struct site site;
    } sites[MAX_INSNS];
};

/* ---- gather.c ---- */

bool build_is_intercepted(const struct insn *in);
bool build_has_break(gaddr pc);
/* Decodes from pc on, at most `limit` instructions. False: there is no code. */
bool build_gather(struct build *b, gaddr pc, int limit);
void build_find_liveness(struct build *b);
/* Small loops get copies of their bodies behind them, each with a counter of its own. */
void build_unroll(struct build *b);

/* ---- translate_insn.c ---- */

void build_add_exit(struct build *b, uint8_t *rel32, gaddr target, enum entry_kind kind);
/* rcx holds an address: goes on with 0 there if it is K, else to `fail`, with anything there. `near`: a jump to `fail` that was emitted
 * before, or NULL. Returns one that may serve the next. */
uint8_t *emit_expect_pc(struct emitter *e, gaddr k, uint8_t *near, const uint8_t *fail);
/* Behind a call: the place a return lands on. */
void emit_site(struct emitter *e, const struct region *r, gaddr k, bool rcx_live);
void emit_special_exit(struct emitter *e, gaddr pc, int fn, int what);
/* Flags and rax, which went to s3, and rcx, which went to s2. */
void emit_undo_flags_test(struct emitter *e);
void emit_insn(struct build *b, int i);

/* ---- translate_ticks.c ---- */

/* A tick is a taken direct transfer to an address not above its own, every call, every indirect jump (ret n is one), and a
 * return right behind a push. The last kind depends on the bytes in front, so it is not among these. */
bool ticks_at(const struct insn *in);
/* Whether a plain return is a tick. n bytes of its own page are in front of it, RETURN_LOOKS_BACK at most. What only looks like a push
 * counts as one: whether a return ticks must not depend on where decoding began. */
bool ticks_at_return(const uint8_t *before, size_t n);
/* In front of such a return. */
void emit_tick_with_flags_kept(struct build *b, int i);
/* In front of a direct call: counts one tick; traps when there is none left. */
void emit_tick(struct build *b, int i);
/* Counts one tick, with rcx in s2; what rcx holds then is lost. */
void emit_tick_rcx(struct build *b, int i);
/* A jump that is taken: the same, and the jump. */
void emit_tick_and_jump(struct build *b, int i);

#endif
