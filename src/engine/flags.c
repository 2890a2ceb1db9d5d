#include "engine/flags.h"

#include "engine/engine.h"
#include "inproc/str.h"

#define LOOK_AHEAD 12 /* instructions */

#define RFLAGS_ARITH 0x8d5ull /* OF SF ZF AF PF CF */

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

static bool decode_at(struct insn *in, gaddr pc, const struct scope *s) {
    uint8_t bytes[INSN_MAX_LEN];
    size_t n = 0;
    for (int i = 0; i < 2; i++)
        if (pc >= s->start[i] && pc < s->end[i]) n = MAX(n, MIN(s->end[i] - pc, (gaddr)sizeof bytes));
    memcpy(bytes, (const void *)pc, n);
    return n && decode_insn(in, bytes, n, pc);
}

bool flags_are_dead(gaddr from, gaddr pc) {
    struct scope scope;
    struct insn in;
    if (!find_scope(&scope, from)) return false;
    for (int i = 0; i < LOOK_AHEAD && decode_at(&in, pc, &scope); i++) {
        if (in.cls == INSN_JMP || in.cls == INSN_CALL) {
            pc = in.target;
            continue;
        }
        if (in.cls != INSN_PLAIN || (in.flags_read & FLAGS_ARITH)) return false;
        if (sets_all_flags(&in)) return true;
        pc += in.len;
    }
    return false;
}

/* The fewest flags with which condition cc holds: o b e be s p l le; none for their opposites. */
static uint64_t least_flags(int cc) {
    static const uint16_t least[] = {0x800, 1, 0x40, 1, 0x80, 4, 0x80, 0x40};
    return cc & 1 ? 0 : least[cc >> 1];
}

void flags_settle_direct(struct tblock *t) {
    struct insn in;
    if (!decode_insn(&in, (const uint8_t *)t->pc, INSN_MAX_LEN, t->pc)) return;
    if (in.cls != INSN_JMP && in.cls != INSN_CALL && in.cls != INSN_JCC) return;
    lock_take(&cache_lock);
    if (flags_are_dead(t->pc, in.target))
        t->rflags = (t->rflags & ~RFLAGS_ARITH) | (in.cls == INSN_JCC ? least_flags(in.cc) : 0);
    lock_drop(&cache_lock);
}

void flags_settle_indirect(struct tblock *t, gaddr target) {
    lock_take(&cache_lock);
    if (flags_are_dead(target, target)) t->rflags &= ~RFLAGS_ARITH;
    lock_drop(&cache_lock);
}

void flags_settle_fault(struct tblock *t) { flags_settle_indirect(t, t->pc); }
