#include "sphere/fpu_image.h"

#include "engine/engine.h"
#include "sphere/gate.h"
#include "sphere/mode.h"
#include "sphere/operand.h"

#define XSTATE_BV 512
#define FSW_ES 0x80 /* an exception waits to be raised */

static bool forgets; /* the processor, at every change of threads, where it last executed and what it touched */

void fpu_image_start(void) {
    static uint64_t before[64] __attribute__((aligned(16))), image[64] __attribute__((aligned(16)));
    __asm__ volatile("fxsave64 %0; fld1; fxsave64 %1; fxrstor64 %0" : "+m"(before), "=m"(image));
    forgets = image[1] == 0;
}

/* fnstenv shows what the processor has not forgotten yet: whether there was a change of threads. So it is forgotten at once. */
static void forget(gaddr at, unsigned size) {
    static const uint8_t zeroes[16];
    uint16_t fsw;
    if (!guest_read(&fsw, at + size, 2) || (fsw & FSW_ES)) return;
    guest_write(at + 3 * size, zeroes, size == 2 ? 8 : 14);
}

static bool is_one_byte(const struct insn *in) { return in->opcode_off == in->prefix_len + in->has_rex; }

bool fpu_image_field(struct fpu_field *f, const struct insn *in, const uint8_t *bytes, gaddr at) {
    unsigned size = operand_size(in, bytes);
    if (is_one_byte(in)) { /* fnstenv, fnsave: never more than 32 bits */
        if (forgets && the_mode->same_x87) forget(at, size == 2 ? 2 : 4);
        *f = size == 2 ? (struct fpu_field){at + 6, 2} : (struct fpu_field){at + 12, 4};
        return true;
    }
    *f = (struct fpu_field){at + 8, size == 8 ? 8 : 4};
    if (in->cls != INSN_XSAVE) return true;
    uint64_t saved;
    return guest_read(&saved, at + XSTATE_BV, 8) && (saved & 1);
}

bool fpu_image_to_guest(uint64_t *ip, unsigned size) {
    if (size == 2) { /* too little to find it by; programs that store this form do not use it */
        *ip = 0;
        return true;
    }
    if (!*ip) return false;
    bool ours = false;
    lock_take(&cache_lock); /* regions come and go */
    for (struct region *r = region_first(); r && !ours; r = r->next) {
        uint64_t host = size == 8 ? *ip : ((uint64_t)r->base & ~0xffffffffull) | *ip;
        if (!region_holds(r, (void *)host)) continue;
        *ip = fault_guest_pc(host); /* 0 if the block is gone */
        ours = true;
    }
    lock_drop(&cache_lock);
    return ours;
}
