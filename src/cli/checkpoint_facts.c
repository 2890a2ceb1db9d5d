#include "cli/checkpoint_facts.h"

#include <stdlib.h>

#include "ckpt/store.h"

/* From the oldest that is left to the last; each stands for several that were taken. */
static uint64_t interval_of(const struct ckpt_store *s) {
    struct ckpt_info first, last;
    size_t n = ckpt_count(s);
    if (n < 2 || !ckpt_info(s, 0, &first) || !ckpt_info(s, n - 1, &last)) return 0;
    if (last.last <= first.last || last.place.time_ns < first.place.time_ns) return 0;
    return (last.place.time_ns - first.place.time_ns) / (last.last - first.last);
}

struct checkpoint_facts checkpoint_facts_of(const struct recording *r) {
    struct checkpoint_facts f = {0};
    char why[WHY_MAX];
    uint64_t *streams, most = 0;
    size_t n;
    if (!r->dir || !ckpt_streams(r->dir, &streams, &n, why)) return f;
    for (size_t i = 0; i < n; i++) {
        struct ckpt_store *s = ckpt_open(r->dir, streams[i], why);
        if (!s) continue;
        struct ckpt_space space = ckpt_space(s);
        f.taken += space.taken;
        f.kept += ckpt_count(s);
        f.bytes += space.data + space.meta;
        f.unconsolidated += space.unconsolidated;
        if (space.taken > most) {
            most = space.taken;
            f.interval_ns = interval_of(s);
        }
        ckpt_close(s);
    }
    free(streams);
    return f;
}
