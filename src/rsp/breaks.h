/* Break- and watchpoints as gdb set them, with the conditions of each. The target gets every place once, however often gdb
 * names it. */
#ifndef REPRISE_RSP_BREAKS_H
#define REPRISE_RSP_BREAKS_H

#include "rsp/agent.h"
#include "rsp/target.h"
#include "rsp/text.h"

struct break_set {
    bool used;
    uint8_t type; /* 0 to 4, as in Z packets */
    uint64_t addr, len;
    struct condition *conditions;
    size_t n_conditions; /* none: always */
};

/* A hash table by place, because a thousand watchpoints are set and cleared at every stop. */
struct breaks {
    struct break_set *slots;
    size_t n_slots, n_used; /* n_slots: a power of two */
    size_t n_conditional;
    size_t by_kind[4];
};

void breaks_clear(struct breaks *, struct target *);
/* `in` stands behind the length: conditions, if any. Setting what is set replaces its conditions. False: it cannot be. */
bool breaks_set(struct breaks *, struct target *, unsigned type, uint64_t addr, uint64_t len, struct in *in);
bool breaks_unset(struct breaks *, struct target *, unsigned type, uint64_t addr, uint64_t len);

/* At a breakpoint: its type, 0 or 1; -1: there is none. */
int breaks_at(const struct breaks *, uint64_t pc);
/* Whether it is to be stopped at: one without conditions, or with one that holds or cannot be evaluated. */
bool breaks_hold(const struct breaks *, uint64_t pc, const struct agent_world *);
/* Which watchpoint a hit at `addr` belongs to: its type, 2 to 4, and an address inside it. 0: none. */
unsigned breaks_watched(const struct breaks *, uint64_t addr, uint64_t *inside);

#endif
