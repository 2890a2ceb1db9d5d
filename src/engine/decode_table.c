/* Decoding by table: the common instructions, in a tenth of the time that Zydis needs. */
#include "engine/decode_desc.h"

#include "decode_table.h"

static unsigned find_entry(const struct scan *s) {
    if (s->space < SPACE_VEX) return legacy_rows[legacy_row[s->space][s->opcode]][s->slot];
    return vex_rows[vex_row[s->space - SPACE_VEX][s->opcode]][s->slot];
}

static unsigned find_desc(const struct scan *s, const uint8_t *b) {
    return variants[variant_of(find_entry(s), b[s->opcode_off + 1])];
}

bool decode_insn_table(struct insn *in, const uint8_t *bytes, size_t avail, gaddr pc) {
    uint8_t copy[DECODE_WINDOW];
    const uint8_t *b = bytes;
    if (unlikely(avail < DECODE_WINDOW)) {
        for (size_t i = 0; i < DECODE_WINDOW; i++) copy[i] = i < avail ? bytes[i] : 0;
        b = copy;
    }
    struct scan s;
    if (!scan_opcode(&s, b)) return false;
    unsigned desc = find_desc(&s, b);
    return desc && fill_from_desc(in, &descs[desc], &s, b, pc) && in->len <= avail;
}

bool decode_insn(struct insn *in, const uint8_t *bytes, size_t avail, gaddr pc) {
    return decode_insn_table(in, bytes, avail, pc) || decode_insn_zydis(in, bytes, avail, pc);
}

bool decode_executed(struct insn *in, gaddr pc) {
    const uint8_t *bytes = (const uint8_t *)pc;
    size_t here = PAGE_SIZE - pc % PAGE_SIZE;
    if (decode_insn(in, bytes, MIN(here, (size_t)INSN_MAX_LEN), pc)) return true;
    return here < INSN_MAX_LEN && decode_insn(in, bytes, INSN_MAX_LEN, pc); /* it goes on in the next page */
}
