#include "sphere/trace_watch.h"

#include "engine/store_filter.h"
#include "inproc/layout.h"
#include "sphere/gate.h"
#include "sphere/operand.h"

#define WATCHES 4
#define DR7_RESERVED 0xffffffff0000fc00ull

enum { ON_EXECUTION, ON_WRITE };

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
    if (kind(dr7, i) > ON_WRITE || (kind(dr7, i) == ON_EXECUTION && bytes(dr7, i) != 1)) return false;
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

/* Where the next instruction stores; a repeated one is stepped one at a time. *len 0: nowhere. False: that is not known. */
static bool find_store(const struct tblock *tb, gaddr *at, size_t *len) {
    struct insn in;
    uint8_t code[INSN_MAX_LEN];
    *len = 0;
    if (!decode_next(tb, &in, code)) return true;
    switch (store_kind(&in, len)) {
    case STORE_NONE: *len = 0; return true;
    case STORE_PUSH: *at = tb->gpr[RSP] - *len; return true;
    case STORE_STRING: *at = tb->gpr[RDI]; return true;
    case STORE_REPEATED:
        *len = in.store_size;
        *at = tb->gpr[RDI];
        return *len != MEM_SIZE_UNKNOWN;
    case STORE_OPERAND:
    case STORE_FS: *at = operand_address(tb, &in, code); return in.encoding == ENC_LEGACY && *len != MEM_SIZE_UNKNOWN;
    default: return false;
    }
}

void trace_watch_begin(struct thread *t) {
    struct tracee *e = t->tracee;
    uint64_t dr7 = e->debug_regs[7];
    gaddr at = 0;
    size_t len = 0;
    e->stores_to = e->may_store = 0;
    if (!trace_watches(e)) return;
    bool known = find_store(t->tb, &at, &len);
    for (unsigned i = 0; i < WATCHES; i++) {
        if (!is_on(dr7, i) || kind(dr7, i) != ON_WRITE) continue;
        gaddr lo = e->debug_regs[i], hi = lo + bytes(dr7, i);
        if (known && at < hi && at + len > lo) e->stores_to |= (uint8_t)(1u << i);
        if (!known) e->may_store |= (uint8_t)(1u << i);
        e->watched[i] = now(e, i);
    }
}

static bool is_hit(const struct thread *t, unsigned i, bool ran) {
    const struct tracee *e = t->tracee;
    if (!is_on(e->debug_regs[7], i)) return false;
    if (kind(e->debug_regs[7], i) == ON_EXECUTION) return e->debug_regs[i] == t->tb->pc;
    return ran && ((e->stores_to >> i & 1) || ((e->may_store >> i & 1) && now(e, i) != e->watched[i]));
}

uint64_t trace_watch_hits(const struct thread *t, bool ran) {
    uint64_t hits = 0;
    for (unsigned i = 0; i < WATCHES; i++) hits |= (uint64_t)is_hit(t, i, ran) << i;
    return hits;
}
