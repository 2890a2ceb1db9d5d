#include "sphere/fpu_image.h"

#include "engine/engine.h"
#include "inproc/str.h"
#include "sphere/cpuid_answers.h"
#include "sphere/gate.h"
#include "sphere/mode.h"
#include "sphere/operand.h"
#include "sphere/sigframe.h"

#define XSTATE_BV 512
#define XSTATE_EXTENDED 576
#define AREA_MAX 16384
#define FSW_ES 0x80 /* an exception waits to be raised */

static bool forgets; /* the processor, at every change of threads, where it last executed and what it touched */

void fpu_image_start(void) {
    static uint64_t before[64] __attribute__((aligned(16))), image[64] __attribute__((aligned(16)));
    __asm__ volatile("fxsave64 %0; fld1; fxsave64 %1; fxrstor64 %0" : "+m"(before), "=m"(image));
    forgets = image[1] == 0;
}

/* fnstenv shows what the processor has not forgotten yet: whether there was a change of threads. So it is an input. */
static bool is_input(gaddr at, unsigned size) {
    uint16_t fsw;
    return forgets && the_mode->x87_pointers && guest_read(&fsw, at + size, 2) && !(fsw & FSW_ES);
}

static void take_input(struct tblock *t, gaddr at, unsigned size) {
    size_t n = size == 2 ? 8 : 14;
    uint64_t pointers[2] = {0, 0}, ip = 0;
    if (!guest_read(pointers, at + 3 * size, n)) return;
    memcpy(&ip, pointers, size);
    if (fpu_image_to_guest(&ip, size)) memcpy(pointers, &ip, size);
    the_mode->x87_pointers(t, pointers);
    guest_write(at + 3 * size, pointers, n);
}

static bool is_one_byte(const struct insn *in) { return in->opcode_off == in->prefix_len + in->has_rex; }

bool fpu_image_field(struct tblock *t, struct fpu_field *f, const struct insn *in, const uint8_t *bytes, gaddr at) {
    unsigned size = operand_size(in, bytes);
    if (is_one_byte(in)) { /* fnstenv, fnsave: never more than 32 bits */
        if (is_input(at, size == 2 ? 2 : 4)) {
            take_input(t, at, size == 2 ? 2 : 4);
            return false;
        }
        *f = size == 2 ? (struct fpu_field){at + 6, 2} : (struct fpu_field){at + 12, 4};
        return true;
    }
    *f = (struct fpu_field){at + 8, size == 8 ? 8 : 4};
    if (in->cls != INSN_XSAVE) return true;
    uint64_t saved;
    return guest_read(&saved, at + XSTATE_BV, 8) && (saved & 1);
}

/* ---- components ---- */

struct component {
    uint32_t offset, size; /* in the standard format */
    bool aligned;          /* in the compacted one */
};

static struct component component(int i) {
    uint32_t r[4] = {0xd, 0, (uint32_t)i, 0};
    cpuid_answer(r);
    return (struct component){.offset = r[1], .size = r[0], .aligned = r[2] & 2};
}

static uint32_t compacted_offset(uint64_t present, int which) {
    uint32_t at = XSTATE_EXTENDED;
    for (int i = 2; i <= which; i++) {
        if (!(present >> i & 1)) continue;
        struct component c = component(i);
        if (c.aligned) at = (at + 63) & ~63u;
        if (i < which) at += c.size;
    }
    return at;
}

/* Component i, as it is in `area`, which is in the standard format. */
static bool put_component(int i, const uint8_t *area, gaddr at, uint64_t present, bool compacted) {
    if (i == 0) return guest_write(at, area, 24) && guest_write(at + 32, area + 32, 128);
    if (i == 1) return guest_write(at + 24, area + 24, 8) && guest_write(at + 160, area + 160, 256);
    struct component c = component(i);
    return guest_write(at + (compacted ? compacted_offset(present, i) : c.offset), area + c.offset, c.size);
}

static void save(uint8_t *area, uint64_t mask, bool is_wide) {
    uint32_t lo = (uint32_t)mask, hi = (uint32_t)(mask >> 32);
    memset(area + XSTATE_BV, 0, 64);
    if (is_wide)
        __asm__ volatile("xsave64 (%0)" : : "r"(area), "a"(lo), "d"(hi) : "memory");
    else
        __asm__ volatile("xsave (%0)" : : "r"(area), "a"(lo), "d"(hi) : "memory");
    fpu_image_to_guest((uint64_t *)(area + 8), is_wide ? 8 : 4);
}

bool fpu_image_xsave(const struct tblock *t, const struct insn *in, const uint8_t *bytes, gaddr at) {
    static uint8_t area[AREA_MAX] __attribute__((aligned(64)));
    uint64_t mask = (t->gpr[RDX] << 32 | (uint32_t)t->gpr[RAX]) & sigframe_extended_mask(), header[2];
    bool compacted = in->opcode == 0xc7 /* xsavec */, all = !compacted && (in->modrm >> 3 & 7) == 4 /* xsave */;
    if (!guest_read(header, at + XSTATE_BV, sizeof header)) return false;
    save(area, mask, operand_size(in, bytes) == 8);
    uint64_t saved = *(uint64_t *)(area + XSTATE_BV) | (mask & FPU_IMAGE_ALWAYS);
    header[0] = compacted ? saved : (header[0] & ~mask) | saved;
    if (compacted) header[1] = mask | 1ull << 63;
    if (!guest_write(at + XSTATE_BV, header, sizeof header)) return false;
    if ((mask & 6) == 4 && !compacted && !guest_write(at + 24, area + 24, 8))
        return false; /* mxcsr goes with AVX, too */
    for (int i = 0; i < 64; i++)
        if (((all ? mask : saved) >> i & 1) && !put_component(i, area, at, mask, compacted)) return false;
    return true;
}

/* ---- the instruction pointer ---- */

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
