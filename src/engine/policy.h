/* Policy: what is inserted into translated code, and who hears of what happens. One object per recorder and replay mode;
 * the translator never asks which mode this is. */
#ifndef REPRISE_POLICY_H
#define REPRISE_POLICY_H

#include "engine/decode.h"
#include "engine/emit_x64.h"
#include "engine/tblock.h"

/* What a hook may overwrite at the place it emits for. */
struct liveness {
    uint16_t regs; /* live general registers */
    uint8_t flags; /* live FLAG_* */
};

struct policy {
    const char *name;
    uint32_t id; /* goes into the key of kept translations */
    bool ticks;  /* count ticks and poll at tick points */
    /* Instructions whose result depends on time, chance or the processor leave the cache as SPECIAL_RECORDED; cpuid always
     * does. `pause` does as SPECIAL_PAUSE: whoever spins wants to be told of. */
    bool intercept;
    /* Emits code that runs before `in`. Must preserve everything that is live. NULL: nothing. */
    void (*before_insn)(struct emitter *e, const struct insn *in, const uint8_t *bytes, struct liveness live);
    /* Called when the thread ends, to report. */
    void (*thread_end)(struct tblock *t);
};

extern const struct policy policy_none, policy_count, policy_ticks, policy_order, policy_order_count;
extern const struct policy *the_policy;

#endif
