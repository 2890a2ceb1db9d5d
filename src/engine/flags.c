#include "engine/flags.h"

#include "engine/engine.h"
#include "inproc/str.h"

#define LOOK_AHEAD 40 /* instructions */

#define RFLAGS_TICK_CHANGES 0x8d4ull /* OF SF ZF AF PF: dec leaves CF as it is */

/* Instructions that give every arithmetic flag a new value, on every processor: what the manuals leave undefined may be left
 * as it was. */
static bool sets_all_flags(const struct insn *in) {
    if (in->flags_kill != FLAGS_ARITH || in->encoding != ENC_LEGACY) return false;
    int escapes = in->opcode_off - in->prefix_len - in->has_rex;
    int digit = in->modrm >> 3 & 7;
    if (escapes == 1) return in->opcode == 0x2e || in->opcode == 0x2f; /* ucomis, comis */
    if (escapes) return false;
    switch (in->opcode) {
    case 0x00 ... 0x3f: /* add or adc sbb and sub xor cmp */
    case 0x80 ... 0x81:
    case 0x83 ... 0x85: /* ..., test */
    case 0xa8 ... 0xa9: return true;
    case 0xf6 ... 0xf7: return digit <= 1 || digit == 3; /* test, neg */
    default: return false;
    }
}

bool flags_is_linker_stub(const struct insn *in) {
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa}, nop2[] = {0x66, 0x90},
                         nop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00}, nop6[] = {0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00};
    if (in->cls != INSN_JMP_IND || !in->rip_rel || in->has_rex) return false;
    const uint8_t *at = (const uint8_t *)in->pc, *behind = at + in->len;
    switch (in->pc & 15) {
    case 0:
        if (in->len == 6 && behind[0] == 0x68 /* push index */ && behind[5] == 0xe9 /* jmp to the resolver */)
            return true;
        return in->len == 6 && memcmp(behind, nop2, sizeof nop2) == 0;
    case 8: return in->len == 6 && memcmp(behind, nop2, sizeof nop2) == 0;
    case 4:
        if (memcmp(at - sizeof endbr64, endbr64, sizeof endbr64) != 0) return false;
        return (in->len == 6 && memcmp(behind, nop6, sizeof nop6) == 0) ||
               (in->len == 7 && memcmp(behind, nop5, sizeof nop5) == 0);
    default: return false;
    }
}

/* Stretches of code that a scan may rely on. */
struct scope {
    gaddr start[2], end[2];
};

/* The page of the transfer; for a file's code all of the file's. */
static bool find_scope(struct scope *s, gaddr from) {
    struct code_range code;
    if (!engine_host.code_at(from, &code) || code.checked) return false;
    *s = (struct scope){{PAGE_DOWN(from), 0}, {PAGE_DOWN(from) + PAGE_SIZE, 0}};
    const struct region *kept = cache_kept_region(from);
    const struct kept_file *f = kept ? &kept->kept.file : NULL;
    if (!f || kept->changed || from < f->text_start || from >= f->text_end) return true;
    s->start[1] = f->text_start;
    s->end[1] = f->text_end;
    return true;
}

static size_t readable_at(gaddr pc, const struct scope *s) {
    struct code_range code;
    if (!s) return engine_host.code_at(pc, &code) ? code.end - pc : 0;
    size_t n = 0;
    for (int i = 0; i < 2; i++)
        if (pc >= s->start[i] && pc < s->end[i]) n = MAX(n, s->end[i] - pc);
    return n;
}

static bool decode_at(struct insn *in, gaddr pc, const struct scope *s) {
    uint8_t bytes[INSN_MAX_LEN];
    size_t n = MIN(readable_at(pc, s), sizeof bytes);
    memcpy(bytes, (const void *)pc, n);
    return n && decode_insn(in, bytes, n, pc);
}

/* s: where to look; NULL: wherever there is code. */
static bool are_overwritten(gaddr pc, const struct scope *s) {
    struct insn in;
    for (int i = 0; i < LOOK_AHEAD && decode_at(&in, pc, s); i++) {
        if (in.cls == INSN_JMP || in.cls == INSN_CALL) {
            pc = in.target;
            continue;
        }
        if (flags_is_linker_stub(&in)) return true;
        if (in.cls != INSN_PLAIN || (in.flags_read & FLAGS_ARITH)) return false;
        if (sets_all_flags(&in)) return true;
        pc += in.len;
    }
    return false;
}

bool flags_are_dead(gaddr from, gaddr pc) {
    struct scope scope;
    return find_scope(&scope, from) && are_overwritten(pc, &scope);
}

/* Not only where a tick may rely on it: what is shown must not depend on whether the file's translations were kept. */
uint64_t flags_as_shown(gaddr pc, uint64_t rflags) {
    lock_take(&cache_lock);
    bool dead = are_overwritten(pc, NULL);
    lock_drop(&cache_lock);
    return dead ? rflags & ~RFLAGS_TICK_CHANGES : rflags;
}

/* The fewest flags, beside CF as it is, with which condition cc holds: o b e be s p l le; none for their opposites. */
static uint64_t least_flags(int cc, bool carry) {
    static const uint16_t least[] = {0x800, 0, 0x40, 0x40, 0x80, 4, 0x80, 0x40};
    return cc & 1 || (cc == 6 /* be */ && carry) ? 0 : least[cc >> 1];
}

void flags_settle_direct(struct tblock *t) {
    struct insn in;
    if (!decode_executed(&in, t->pc)) return;
    if (in.cls != INSN_JMP && in.cls != INSN_CALL && in.cls != INSN_JCC) return;
    lock_take(&cache_lock);
    bool dead = are_overwritten(in.target, NULL);
    lock_drop(&cache_lock);
    if (!dead) return;
    t->rflags &= ~RFLAGS_TICK_CHANGES;
    if (in.cls == INSN_JCC) t->rflags |= least_flags(in.cc, t->rflags & 1);
}

void flags_settle(struct tblock *t, gaddr pc) { t->rflags = flags_as_shown(pc, t->rflags); }
