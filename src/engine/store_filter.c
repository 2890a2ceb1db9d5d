#include "engine/store_filter.h"

#include <linux/mman.h>

#include "engine/engine.h"
#include "inproc/fmt.h"
#include "inproc/layout.h"
#include "inproc/str.h"
#include "inproc/sys.h"

#define OPCODE_MOV_MOFFS 0xa2 /* and a3 */

static bool is_on;

/* ---- what instructions store ---- */

static bool is_string(const struct insn *in) {
    switch (in->opcode) {
    case 0xa4: /* movs */
    case 0xa5:
    case 0xaa: /* stos */
    case 0xab:
    case 0x6c: /* ins */
    case 0x6d: return in->encoding == ENC_LEGACY && !in->modrm_off;
    default: return false;
    }
}

/* pop to memory: its address is computed with rsp behind the pop. */
static bool is_pop_to_memory(const struct insn *in) { return in->pop_size && in->has_mem; }

enum store_kind store_kind(const struct insn *in, size_t *size) {
    *size = in->store_size ? in->store_size : in->push_size;
    if (!*size) return STORE_NONE;
    if (*size == MEM_SIZE_UNKNOWN || *size > STORE_MAX || in->seg == 0x65 || is_pop_to_memory(in)) return STORE_UNKNOWN;
    if (in->encoding == ENC_XOP || in->encoding == ENC_3DNOW) return STORE_UNKNOWN;
    if (in->push_size) return STORE_PUSH;
    if (is_string(in)) return in->rep ? STORE_REPEATED : STORE_STRING;
    if (!in->has_mem) return STORE_UNKNOWN; /* mov to an address in the instruction: nobody writes that */
    return in->seg == 0x64 ? STORE_FS : STORE_OPERAND;
}

/* ---- the look-up ---- */

/* The table for stores of `size` bytes, of which there are STORE_MAX at most. */
static uint32_t table_for(size_t size) {
    unsigned k = 0;
    while (1ul << k < size) k++;
    return (uint32_t)(TABLE_STORES + k * TABLE_STORES_SIZE);
}

static void emit_address(struct emitter *e, enum store_kind kind, const struct insn *in, const uint8_t *bytes,
                         size_t size) {
    switch (kind) {
    case STORE_PUSH: emit_lea(e, RCX, RSP, -(int32_t)size); break;
    case STORE_STRING: emit_mov_reg_reg(e, RCX, RDI); break;
    case STORE_OPERAND:
    case STORE_FS:
        if (!emit_lea_operand(e, in, bytes, RCX))
            emit_mov_reg_imm(e, RCX, in->eip_rel ? (uint32_t)in->target : in->target);
        break;
    default: break;
    }
}

/* With rcx in s2: leaves the cache in front of the instruction; host_pc is where it goes on if nothing is to be done. Returns the
 * rel32 for that. */
static uint8_t *emit_ask(struct emitter *e, enum store_kind kind, const struct insn *in, const uint8_t *bytes,
                         size_t size) {
    emit_load_tb(e, RCX, TB_S2);
    emit_address(e, kind, in, bytes, size);
    emit_store_tb(e, RCX, TB_S1);
    uint8_t *on = emit_lea_rip(e, RCX);
    emit_store_tb(e, RCX, TB_HOST_PC);
    emit_load_tb(e, RCX, TB_S2);
    emit_store_tb_u64(e, TB_PC, in->pc);
    emit_store_tb_imm32(e, TB_EXIT_INDEX, SPECIAL_STORE);
    emit_jmp_tb(e, TB_FN_SPECIAL);
    return on;
}

static void filter(struct emitter *e, const struct insn *in, const uint8_t *bytes, struct liveness live) {
    size_t size;
    enum store_kind kind = store_kind(in, &size);
    uint8_t *ok = NULL;
    if (kind == STORE_NONE) return;
    emit_store_tb(e, RCX, TB_S2);
    if (kind == STORE_OPERAND || kind == STORE_PUSH || kind == STORE_STRING) {
        emit_address(e, kind, in, bytes, size);
        emit_movzx16_reg(e, RCX, RCX);
        emit_load_byte_table(e, RCX, table_for(size));
        ok = emit_jrcxz(e);
    }
    uint8_t *on = emit_ask(e, kind, in, bytes, size);
    if (ok) emit_land_short(e, ok);
    if (!e->full) emit_set_rel32(on, e->p);
    emit_load_tb(e, RCX, TB_S2);
}

const struct policy policy_order_stores = {
    .name = "order-stores", .id = 5, .ticks = true, .intercept = true, .before_insn = filter};

/* ---- the tables ---- */

#define ALL_SIZE (TABLES_STORES * TABLE_STORES_SIZE)
_Static_assert(1 << (TABLES_STORES - 1) == STORE_MAX, "a table for each length");

void store_filter_start(void) {
    if (is_on) return;
    long got = SYS(mmap, TABLE_STORES, ALL_SIZE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != (long)TABLE_STORES) die("no memory for the table of watched stores (error %ld)", -got);
    is_on = true;
    lock_take(&cache_lock);
    the_policy = &policy_order_stores;
    cache_invalidate_range(0, LAYOUT_GUEST_END);
    lock_drop(&cache_lock);
}

bool store_filter_is_on(void) { return is_on; }

void store_filter_clear(void) {
    if (is_on) memset((void *)TABLE_STORES, 0, ALL_SIZE);
}

void store_filter_mark(gaddr addr, uint64_t len) {
    if (len >= TABLE_STORES_SIZE - STORE_MAX) {
        memset((void *)TABLE_STORES, 1, ALL_SIZE);
        return;
    }
    for (size_t most = 1; most <= STORE_MAX; most *= 2) {
        uint8_t *table = (uint8_t *)(uint64_t)table_for(most);
        for (uint64_t i = 0; i < len + most - 1; i++) table[(addr - (most - 1) + i) & (TABLE_STORES_SIZE - 1)] = 1;
    }
}
