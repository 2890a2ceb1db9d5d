#include "sphere/trace_watch.h"

#include "engine/store_filter.h"
#include "inproc/layout.h"
#include "sphere/gate.h"
#include "sphere/operand.h"

#define WATCHES 4
#define DR7_RESERVED 0xffffffff0000fc00ull

enum { ON_EXECUTION, ON_WRITE, ON_IO, ON_ACCESS };

static unsigned field(uint64_t dr7, unsigned i) { return (unsigned)(dr7 >> (16 + 4 * i)) & 15; }
static bool is_on(uint64_t dr7, unsigned i) { return dr7 >> (2 * i) & 3; }
static unsigned kind(uint64_t dr7, unsigned i) { return field(dr7, i) & 3; }

static unsigned bytes(uint64_t dr7, unsigned i) {
    static const uint8_t sizes[] = {1, 2, 8, 4};
    return sizes[field(dr7, i) >> 2];
}

static bool is_valid(uint64_t dr7, unsigned i, gaddr addr) {
    if (addr >= LAYOUT_GUEST_END) return false;
    if (!is_on(dr7, i)) return true;
    if (kind(dr7, i) == ON_IO || (kind(dr7, i) == ON_EXECUTION && bytes(dr7, i) != 1)) return false;
    return addr % bytes(dr7, i) == 0;
}

static long set_control(struct tracee *e, uint64_t dr7) {
    for (unsigned i = 0; i < WATCHES; i++)
        if (!is_valid(dr7, i, e->debug_regs[i])) return -EINVAL;
    e->debug_regs[7] = dr7 & ~DR7_RESERVED;
    return 0;
}

long trace_watch_set(struct tracee *e, unsigned i, uint64_t word) {
    if (i == 4 || i == 5) return -EIO;
    if (i == 7) return set_control(e, word);
    if (i < WATCHES && !is_valid(e->debug_regs[7], i, word)) return -EINVAL;
    e->debug_regs[i] = word;
    return 0;
}

static uint64_t now(const struct tracee *e, unsigned i) {
    uint64_t word = 0;
    guest_read(&word, e->debug_regs[i], bytes(e->debug_regs[7], i));
    return word;
}

static bool decode_next(const struct tblock *tb, struct insn *in, uint8_t code[INSN_MAX_LEN]) {
    size_t n = INSN_MAX_LEN;
    if (!guest_read(code, tb->pc, n)) {
        n = MIN(n, PAGE_SIZE - tb->pc % PAGE_SIZE);
        if (!guest_read(code, tb->pc, n)) return false;
    }
    return decode_insn(in, code, n, tb->pc);
}

struct access {
    gaddr at;
    size_t len;
};

#define XSAVE_MOST 16384

/* Where an instruction may store of which the length is not known: other threads can change what is elsewhere. */
static struct access store_at_most(const struct tblock *tb, const struct insn *in, const uint8_t *code) {
    bool is_xsave = in->has_mem && (in->cls == INSN_XSAVE || in->cls == INSN_FPU_STORE);
    size_t len = in->store_size == MEM_SIZE_UNKNOWN ? XSAVE_MOST : in->store_size;
    return is_xsave ? (struct access){operand_address(tb, in, code), len} : (struct access){0, LAYOUT_GUEST_END};
}

/* Where the instruction stores; a repeated one is stepped one at a time. len 0: nowhere. False: at most there. */
static bool find_store(const struct tblock *tb, const struct insn *in, const uint8_t *code, struct access *a) {
    switch (store_kind(in, &a->len)) {
    case STORE_NONE: a->len = 0; return true;
    case STORE_PUSH: a->at = tb->gpr[RSP] - a->len; return true;
    case STORE_STRING: a->at = tb->gpr[RDI]; return true;
    case STORE_REPEATED:
        a->len = in->store_size;
        a->at = tb->gpr[RDI];
        return a->len != MEM_SIZE_UNKNOWN;
    case STORE_OPERAND:
    case STORE_FS: a->at = operand_address(tb, in, code); return a->len != MEM_SIZE_UNKNOWN;
    default: *a = store_at_most(tb, in, code); return false;
    }
}

#define LOADS_MOST 3

static bool is_one_byte(const struct insn *in) {
    return in->encoding == ENC_LEGACY && in->opcode_off == in->prefix_len + in->has_rex;
}

/* Operands that modrm does not name. */
static unsigned find_implicit_loads(const struct tblock *tb, const struct insn *in, struct access *a) {
    size_t len = in->load_size;
    if (!is_one_byte(in)) return 0;
    switch (in->opcode) {
    case 0xa0:
    case 0xa1: a[0] = (struct access){(gaddr)in->imm, len}; return 1;
    case 0xa4:
    case 0xa5:
    case 0xac:
    case 0xad: a[0] = (struct access){tb->gpr[RSI], len}; return 1;
    case 0xa6:
    case 0xa7:
        a[0] = (struct access){tb->gpr[RSI], len};
        a[1] = (struct access){tb->gpr[RDI], len};
        return 2;
    case 0xae:
    case 0xaf: a[0] = (struct access){tb->gpr[RDI], len}; return 1;
    case 0xd7: a[0] = (struct access){tb->gpr[RBX] + (uint8_t)tb->gpr[RAX], len}; return 1;
    default: return 0;
    }
}

/* Where it loads from, as far as that is known: gather, xrstor and the like are not seen. */
static unsigned find_loads(const struct tblock *tb, const struct insn *in, const uint8_t *code, struct access *a) {
    unsigned n = 0;
    bool is_leave = is_one_byte(in) && in->opcode == 0xc9;
    if (in->pop_size) a[n++] = (struct access){tb->gpr[is_leave ? RBP : RSP], in->pop_size};
    if (!in->load_size || in->load_size == MEM_SIZE_UNKNOWN) return n;
    if (!in->has_mem) return n + find_implicit_loads(tb, in, a + n);
    if (in->encoding != ENC_XOP && in->encoding != ENC_3DNOW)
        a[n++] = (struct access){operand_address(tb, in, code), in->load_size};
    return n;
}

static bool touches(const struct access *a, gaddr lo, gaddr hi) { return a->at < hi && a->at + a->len > lo; }

void trace_watch_begin(struct thread *t) {
    struct tracee *e = t->tracee;
    uint64_t dr7 = e->debug_regs[7];
    struct insn in;
    uint8_t code[INSN_MAX_LEN];
    struct access store = {0, 0}, loads[LOADS_MOST];
    e->touches = e->may_store = 0;
    if (!trace_watches(e)) return;
    bool decoded = decode_next(t->tb, &in, code), known = !decoded || find_store(t->tb, &in, code, &store);
    unsigned n = decoded ? find_loads(t->tb, &in, code, loads) : 0;
    for (unsigned i = 0; i < WATCHES; i++) {
        if (!is_on(dr7, i) || kind(dr7, i) == ON_EXECUTION) continue;
        gaddr lo = e->debug_regs[i], hi = lo + bytes(dr7, i);
        bool stores = touches(&store, lo, hi), hit = known && stores;
        for (unsigned k = 0; k < n && kind(dr7, i) == ON_ACCESS; k++) hit |= touches(&loads[k], lo, hi);
        if (hit) e->touches |= (uint8_t)(1u << i);
        if (!known && stores) e->may_store |= (uint8_t)(1u << i);
        e->watched[i] = now(e, i);
    }
}

static bool is_hit(const struct thread *t, unsigned i, bool ran) {
    const struct tracee *e = t->tracee;
    if (!is_on(e->debug_regs[7], i)) return false;
    if (kind(e->debug_regs[7], i) == ON_EXECUTION) return e->debug_regs[i] == t->tb->pc;
    return ran && ((e->touches >> i & 1) || ((e->may_store >> i & 1) && now(e, i) != e->watched[i]));
}

uint64_t trace_watch_hits(const struct thread *t, bool ran) {
    uint64_t hits = 0;
    for (unsigned i = 0; i < WATCHES; i++) hits |= (uint64_t)is_hit(t, i, ran) << i;
    return hits;
}
