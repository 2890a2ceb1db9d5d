#include "engine/hints.h"

#define BLOCK_BITS (1ul << 21)
#define CHUNK_SHIFT 21
#define CHUNK_BITS (1ul << 16) /* 128 GB: what is further away shares a bit */

static uint64_t blocks[BLOCK_BITS / 64], chunks[CHUNK_BITS / 64];

static bool bit(const uint64_t *bits, uint64_t i) {
    return __atomic_load_n(&bits[i / 64], __ATOMIC_RELAXED) >> i % 64 & 1;
}

static void set_bit(uint64_t *bits, uint64_t i) {
    if (!bit(bits, i)) __atomic_store_n(&bits[i / 64], bits[i / 64] | 1ul << i % 64, __ATOMIC_RELEASE);
}

void hints_add_block(gaddr pc) { set_bit(blocks, pc % BLOCK_BITS); }

bool hints_may_be_block(gaddr pc) { return bit(blocks, pc % BLOCK_BITS); }

void hints_add_code(gaddr lo, gaddr hi) {
    for (uint64_t i = lo >> CHUNK_SHIFT; i <= (hi - 1) >> CHUNK_SHIFT; i++) set_bit(chunks, i % CHUNK_BITS);
}

bool hints_may_be_code(gaddr lo, gaddr hi) {
    if (lo >= hi) return false;
    uint64_t first = lo >> CHUNK_SHIFT, last = (hi - 1) >> CHUNK_SHIFT;
    if (last - first >= CHUNK_BITS) return true;
    for (uint64_t i = first; i <= last; i++)
        if (bit(chunks, i % CHUNK_BITS)) return true;
    return false;
}
