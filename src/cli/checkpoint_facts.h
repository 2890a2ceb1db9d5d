/* What a recording has of checkpoints, for `info`. */
#ifndef REPRISE_CHECKPOINT_FACTS_H
#define REPRISE_CHECKPOINT_FACTS_H

#include "log/recording.h"

struct checkpoint_facts {
    uint64_t taken, kept;
    uint64_t bytes;          /* on disk */
    uint64_t unconsolidated; /* what an undo log of each would have taken */
    uint64_t interval_ns;    /* kept on average by the stream with most of them; 0: not known */
};

/* All zero: there are none. */
struct checkpoint_facts checkpoint_facts_of(const struct recording *);

#endif
