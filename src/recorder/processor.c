#include "recorder/processor.h"

#include "inproc/str.h"
#include "inproc/sys.h"

#define BITS 64

static bool is_one(const uint64_t *set, long bytes) {
    int n = 0;
    for (long i = 0; i < bytes / 8; i++) n += set[i] == 0 ? 0 : (set[i] & (set[i] - 1)) == 0 ? 1 : 2;
    return n == 1;
}

void processor_bring(struct thread *t) {
    struct thread *self = thread_self();
    struct processors *c = &t->confined;
    unsigned here;
    if (!t->tid || t->tgid != self->tgid || c->bytes || SYS(getcpu, &here, 0, 0) != 0 || here >= sizeof c->allowed * 8)
        return;
    long bytes = SYS(sched_getaffinity, t->tid, sizeof c->allowed, c->allowed);
    if (bytes <= 0 || is_one(c->allowed, bytes)) return;
    uint64_t set[ARRAY_LEN(c->allowed)] = {0};
    set[here / BITS] = 1ull << (here % BITS);
    if (SYS(sched_setaffinity, t->tid, bytes, set) != 0) return;
    c->here = here;
    c->bytes = (uint32_t)bytes;
}

void processor_release(struct thread *self) {
    struct processors *c = &self->confined;
    if (!c->bytes) return;
    uint64_t set[ARRAY_LEN(c->allowed)];
    long bytes = SYS(sched_getaffinity, 0, sizeof set, set);
    /* somebody else may have set another one meanwhile */
    if (bytes > 0 && is_one(set, bytes) && (set[c->here / BITS] >> (c->here % BITS) & 1))
        SYS(sched_setaffinity, 0, c->bytes, c->allowed);
    c->bytes = 0;
}
