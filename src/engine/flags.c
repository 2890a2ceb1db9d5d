#include "engine/flags.h"

#include "engine/engine.h"
#include "inproc/str.h"
#include "inproc/sys.h"

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

static size_t bytes_at(gaddr pc, const struct flags_scope *scope) {
    struct code_range code;
    if (!scope) return engine_host.code_at(pc, &code) ? code.end - pc : 0;
    for (int i = 0; i < 2; i++)
        if (pc >= scope->start[i] && pc < scope->end[i]) return scope->end[i] - pc;
    return 0;
}

/* For a signal handler: a file may have been cut off under its code, and one more fault would be the last. */
static size_t read_carefully(uint8_t *to, gaddr pc, size_t n) {
    struct {
        uint64_t base, len;
    } here = {(uint64_t)to, n}, there = {pc, n};
    long self = SYS(getpid);
    long got = SYS(process_vm_readv, self, &here, 1, &there, 1, 0);
    return got < 0 ? 0 : (size_t)got;
}

static bool decode_at(struct insn *in, gaddr pc, const struct flags_scope *scope) {
    uint8_t bytes[INSN_MAX_LEN];
    size_t n = MIN(bytes_at(pc, scope), sizeof bytes);
    if (scope)
        memcpy(bytes, (const void *)pc, n);
    else
        n = read_carefully(bytes, pc, n);
    return n && decode_insn(in, bytes, n, pc);
}

bool flags_are_dead(gaddr pc, const struct flags_scope *scope) {
    struct insn in;
    for (int i = 0; i < LOOK_AHEAD && decode_at(&in, pc, scope); i++) {
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

void flags_settle_at_fault(struct tblock *t) {
    lock_take(&cache_lock);
    if (flags_are_dead(t->pc, NULL)) t->rflags &= ~RFLAGS_ARITH;
    lock_drop(&cache_lock);
}

/* The fewest flags with which condition cc holds: o b e be s p l le; none for their opposites. */
static uint64_t least_flags(int cc) {
    static const uint16_t least[] = {0x800, 1, 0x40, 1, 0x80, 4, 0x80, 0x40};
    return cc & 1 ? 0 : least[cc >> 1];
}

void flags_settle_at_tick(struct tblock *t) {
    struct insn in;
    lock_take(&cache_lock);
    if (decode_at(&in, t->pc, NULL) && (in.cls == INSN_JMP || in.cls == INSN_CALL || in.cls == INSN_JCC) &&
        flags_are_dead(in.target, NULL))
        t->rflags = (t->rflags & ~RFLAGS_ARITH) | (in.cls == INSN_JCC ? least_flags(in.cc) : 0);
    lock_drop(&cache_lock);
}
