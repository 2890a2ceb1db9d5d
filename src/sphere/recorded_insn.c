#include "sphere/recorded_insn.h"

#include "engine/engine.h"
#include "sphere/cpuid_answers.h"
#include "sphere/gate.h"
#include "sphere/operand.h"
#include "sphere/signals.h"

#define SIGILL_ 4
#define SIGSEGV_ 11
#define TRAP_INVALID_OPCODE 6

#define RFLAGS_CF 1ull
#define RFLAGS_ZF 0x40ull
#define RFLAGS_ARITH 0x8d5ull /* OF SF ZF AF PF CF */

static bool has_feature(uint32_t leaf, uint32_t sub, int reg, int bit) {
    uint32_t highest[4] = {leaf & 0x80000000, 0, 0, 0}, r[4] = {leaf, 0, sub, 0};
    cpuid_answer(highest);
    if (highest[0] < leaf) return false;
    cpuid_answer(r);
    return r[reg] >> bit & 1;
}

enum { EAX, EBX, ECX, EDX };

static bool ask_processor_for(unsigned which) {
    switch (which) {
    case RECORDED_RDTSCP: return has_feature(0x80000001, 0, EDX, 27);
    case RECORDED_RDRAND: return has_feature(1, 0, ECX, 30);
    case RECORDED_RDSEED: return has_feature(7, 0, EBX, 18);
    case RECORDED_RDPID: return has_feature(7, 0, ECX, 22);
    case RECORDED_XGETBV: return has_feature(1, 0, ECX, 27);
    case RECORDED_RDPRU: return has_feature(0x80000008, 0, EBX, 4);
    default: return true;
    }
}

/* cpuid is slow where a hypervisor answers it. */
static bool processor_has(unsigned which) {
    static uint8_t known[RECORDED_RDPRU + 1]; /* 1: no, 2: yes */
    if (!known[which]) known[which] = ask_processor_for(which) ? 2 : 1;
    return known[which] == 2;
}

static bool is_extended_register(uint32_t n) { return n == 0 || (n == 1 && has_feature(0xd, 1, EAX, 2)); }

static unsigned which_of(const struct insn *in) {
    switch (in->cls) {
    case INSN_RDTSC: return RECORDED_RDTSC;
    case INSN_RDTSCP: return RECORDED_RDTSCP;
    case INSN_CPUID: return RECORDED_CPUID;
    case INSN_RDRAND: return (in->modrm >> 3 & 7) == 6 ? RECORDED_RDRAND : RECORDED_RDSEED;
    case INSN_RDPID: return RECORDED_RDPID;
    case INSN_RDPRU: return RECORDED_RDPRU;
    case INSN_XGETBV: return RECORDED_XGETBV;
    case INSN_LSL: return RECORDED_LSL;
    default: return 0;
    }
}

static void refuse(struct tblock *t, bool undefined) {
    if (undefined)
        signals_raise(t, &(struct guest_fault){SIGILL_, 2 /* ILL_ILLOPN */, t->pc, TRAP_INVALID_OPCODE, 0});
    else
        signals_raise(t, &(struct guest_fault){SIGSEGV_, SI_KERNEL_, 0, TRAP_PROTECTION, 0});
}

bool recorded_insn_is_tsc(const struct recorded_insn *in) {
    return in->which == RECORDED_RDTSC || in->which == RECORDED_RDTSCP;
}

void recorded_insn_forbid(struct tblock *t) { refuse(t, false); }

static bool read_selector(struct tblock *t, const struct insn *in, const uint8_t *bytes, struct recorded_insn *out) {
    out->reg = (uint8_t)operand_reg(in, bytes);
    out->size = (uint8_t)operand_size(in, bytes);
    if (in->modrm >> 6 == 3) {
        out->selector = (uint16_t)t->gpr[operand_rm(in, bytes)];
        return true;
    }
    if (guest_read(&out->selector, operand_address(t, in, bytes), 2)) return true;
    signals_raise_copy_fault(t);
    return false;
}

/* What loaders ask dozens of times at each start: decoding it in full would take longer than answering it. */
static bool is_plain_cpuid(gaddr pc) {
    uint8_t two[2];
    return guest_read(two, pc, 2) && two[0] == 0x0f && two[1] == 0xa2;
}

bool recorded_insn_decode(struct tblock *t, struct recorded_insn *out) {
    if (is_plain_cpuid(t->pc)) {
        *out = (struct recorded_insn){.which = RECORDED_CPUID, .len = 2};
        return true;
    }
    uint8_t bytes[INSN_MAX_LEN];
    size_t n = sizeof bytes;
    while (n && !guest_read(bytes, t->pc, n)) n--;
    struct insn in;
    unsigned which = n && decode_insn(&in, bytes, n, t->pc) ? which_of(&in) : 0;
    if (!which) {
        engine_drop_block(t->pc);
        return false;
    }
    bool undefined = !processor_has(which);
    if (undefined || (which == RECORDED_XGETBV && !is_extended_register((uint32_t)t->gpr[RCX]))) {
        refuse(t, undefined);
        return false;
    }
    *out = (struct recorded_insn){.which = (uint16_t)which, .len = in.len};
    if (which == RECORDED_RDRAND || which == RECORDED_RDSEED || which == RECORDED_RDPID) {
        out->reg = (uint8_t)operand_rm(&in, bytes);
        out->size = which == RECORDED_RDPID ? 8 : (uint8_t)operand_size(&in, bytes);
    }
    return which != RECORDED_LSL || read_selector(t, &in, bytes, out);
}

/* One try, as the program makes it: it may fail, and then gives 0 without CF. */
#define TRY(insn, type, result)                                               \
    do {                                                                      \
        type v_;                                                              \
        uint8_t cf_;                                                          \
        __asm__ volatile(insn " %0; setc %1" : "=r"(v_), "=q"(cf_) : : "cc"); \
        *(result) = (struct ev_insn){.rax = v_, .flags = cf_};                \
    } while (0)

static void try_random(const struct recorded_insn *in, struct ev_insn *result) {
    bool seed = in->which == RECORDED_RDSEED;
    switch (in->size) {
    case 2:
        if (seed)
            TRY("rdseed", uint16_t, result);
        else
            TRY("rdrand", uint16_t, result);
        break;
    case 4:
        if (seed)
            TRY("rdseed", uint32_t, result);
        else
            TRY("rdrand", uint32_t, result);
        break;
    default:
        if (seed)
            TRY("rdseed", uint64_t, result);
        else
            TRY("rdrand", uint64_t, result);
    }
}

void recorded_insn_execute(const struct recorded_insn *in, const struct tblock *t, struct ev_insn *result) {
    uint32_t a = (uint32_t)t->gpr[RAX], b = 0, c = (uint32_t)t->gpr[RCX], d = 0;
    uint64_t id;
    switch (in->which) {
    case RECORDED_RDTSC: __asm__ volatile("rdtsc" : "=a"(a), "=d"(d)); break;
    case RECORDED_RDTSCP: __asm__ volatile("rdtscp" : "=a"(a), "=c"(c), "=d"(d)); break;
    case RECORDED_CPUID: {
        uint32_t r[4] = {a, 0, c, 0};
        cpuid_answer(r);
        *result = (struct ev_insn){.rax = r[0], .rbx = r[1], .rcx = r[2], .rdx = r[3]};
        return;
    }
    case RECORDED_XGETBV:
        /* Register 1 says which components are in their initial state. The processor's answer depends on signals and on
         * the kernel; ours is that all are in use, always. */
        __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
        break;
    case RECORDED_RDPRU: {
        uint64_t flags;
        __asm__ volatile(".byte 0x0f, 0x01, 0xfd; lea -128(%%rsp), %%rsp; pushf; pop %2; lea 128(%%rsp), %%rsp"
                         : "=a"(a), "=d"(d), "=r"(flags)
                         : "c"(c)
                         : "cc");
        *result = (struct ev_insn){.rax = a, .rdx = d, .flags = flags & RFLAGS_ARITH};
        return;
    }
    case RECORDED_RDPID:
        __asm__ volatile("rdpid %0" : "=r"(id));
        *result = (struct ev_insn){.rax = id};
        return;
    case RECORDED_LSL: {
        uint64_t limit = 0;
        uint8_t zf;
        __asm__ volatile("lsl %w2, %k0; setz %1" : "+r"(limit), "=q"(zf) : "r"(in->selector) : "cc");
        *result = (struct ev_insn){.rax = limit, .flags = zf ? RFLAGS_ZF : 0};
        return;
    }
    default: try_random(in, result); return;
    }
    *result = (struct ev_insn){.rax = a, .rbx = b, .rcx = c, .rdx = d};
}

static void set_destination(const struct recorded_insn *in, struct tblock *t, uint64_t v) {
    if (in->size == 2)
        t->gpr[in->reg] = (t->gpr[in->reg] & ~0xffffull) | (uint16_t)v;
    else
        t->gpr[in->reg] = in->size == 4 ? (uint32_t)v : v;
}

void recorded_insn_apply(const struct recorded_insn *in, struct tblock *t, const struct ev_insn *result) {
    switch (in->which) {
    case RECORDED_RDRAND:
    case RECORDED_RDSEED: t->rflags = (t->rflags & ~RFLAGS_ARITH) | (result->flags & RFLAGS_CF); /* fall through */
    case RECORDED_RDPID: set_destination(in, t, result->rax); break;
    case RECORDED_LSL:
        t->rflags = (t->rflags & ~RFLAGS_ZF) | (result->flags & RFLAGS_ZF);
        if (result->flags & RFLAGS_ZF) set_destination(in, t, result->rax);
        break;
    case RECORDED_RDPRU: t->rflags = (t->rflags & ~RFLAGS_ARITH) | (result->flags & RFLAGS_ARITH); /* fall through */
    default:
        t->gpr[RAX] = result->rax;
        t->gpr[RDX] = result->rdx;
        if (in->which == RECORDED_CPUID) t->gpr[RBX] = result->rbx;
        if (in->which == RECORDED_CPUID || in->which == RECORDED_RDTSCP) t->gpr[RCX] = result->rcx;
    }
    t->pc += in->len;
}
