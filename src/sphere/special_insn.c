#include "sphere/special_insn.h"

#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/gate.h"
#include "sphere/legacy.h"
#include "sphere/signals.h"

#define SIGILL_ 4
#define SIGTRAP_ 5
#define SIGSEGV_ 11

static void fault(struct tblock *t, int signo, int code, gaddr addr) {
    signals_raise_fault(t, signo, code, addr);
    signals_safepoint(t);
}

static void illegal(struct tblock *t) { fault(t, SIGILL_, 2 /* ILL_ILLOPN */, t->pc); }

static void do_int(struct tblock *t, const struct insn *in) {
    uint8_t op = in->opcode;
    if (op == 0xcc || (op == 0xcd && (uint8_t)in->imm == 3)) {
        t->pc += in->len;
        fault(t, SIGTRAP_, 0x80 /* SI_KERNEL */, 0);
        return;
    }
    if (op == 0xf1) {
        t->pc += in->len;
        fault(t, SIGTRAP_, 1 /* TRAP_BRKPT */, t->pc);
        return;
    }
    if (op == 0xcd && (uint8_t)in->imm == 0x80) {
        t->pc += in->len;
        legacy_int80(t, in->len);
        return;
    }
    fault(t, SIGSEGV_, 0x80, 0);
}

static bool pop64(struct tblock *t, uint64_t *v) {
    if (!guest_read(v, t->gpr[RSP], 8)) return false;
    t->gpr[RSP] += 8;
    return true;
}

/* iretq and retf to the same code segment; everything else that is far faults as it would for a bad selector. */
static void do_far(struct tblock *t, const struct insn *in) {
    const uint8_t *b = (const uint8_t *)t->pc;
    bool wide = in->has_rex && (b[in->rex_off] & 8);
    uint64_t old_sp = t->gpr[RSP], pc, cs, flags, sp, ss;
    if (in->opcode == 0xcf && wide && pop64(t, &pc) && pop64(t, &cs) && pop64(t, &flags) && pop64(t, &sp) && pop64(t, &ss) &&
        (uint16_t)cs == 0x33) {
        t->pc = pc;
        t->gpr[RSP] = sp;
        t->rflags = (flags & 0x244dd5ull) | 0x202;
        return;
    }
    t->gpr[RSP] = old_sp;
    if ((in->opcode == 0xcb || in->opcode == 0xca) && wide && pop64(t, &pc) && pop64(t, &cs) && (uint16_t)cs == 0x33) {
        t->pc = pc;
        if (in->opcode == 0xca) t->gpr[RSP] += (uint16_t)in->imm;
        return;
    }
    t->gpr[RSP] = old_sp;
    fault(t, SIGSEGV_, 0x80, 0);
}

static void do_gsbase(struct tblock *t, const struct insn *in) {
    const uint8_t *b = (const uint8_t *)t->pc;
    bool wide = in->has_rex && (b[in->rex_off] & 8);
    int reg = (in->modrm & 7) | (in->has_rex ? (b[in->rex_off] & 1) << 3 : 0);
    if ((in->modrm >> 3 & 7) == 1) /* rdgsbase */
        t->gpr[reg] = wide ? t->guest_gs : (uint32_t)t->guest_gs;
    else
        t->guest_gs = wide ? t->gpr[reg] : (uint32_t)t->gpr[reg];
    t->pc += in->len;
}

void special_insn(struct tblock *t, enum special what) {
    struct insn in;
    uint8_t bytes[INSN_MAX_LEN];
    size_t n = INSN_MAX_LEN;
    while (n && !guest_read(bytes, t->pc, n)) n--;
    if (!decode_insn(&in, bytes, n, t->pc)) {
        if (n < INSN_MAX_LEN)
            fault(t, SIGSEGV_, 1, t->pc + n); /* it runs off the end of what can be executed */
        else
            illegal(t);
        return;
    }
    switch (what) {
    case SPECIAL_INT: do_int(t, &in); break;
    case SPECIAL_FAR: do_far(t, &in); break;
    case SPECIAL_GSBASE: do_gsbase(t, &in); break;
    case SPECIAL_XBEGIN: /* every transaction aborts at once */
        t->gpr[RAX] = 0;
        t->pc = in.target;
        break;
    default: illegal(t);
    }
}
