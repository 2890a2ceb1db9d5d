#include "engine/spans.h"

#define MAX_SPANS 4096
static struct span { uint64_t base, end; /* end 0: free */ } spans[MAX_SPANS];
static size_t n_spans;

bool span_add(uint64_t base, uint64_t end) {
    size_t i = 0;
    while (i < n_spans && spans[i].end) i++;
    if (i == MAX_SPANS) return false;
    spans[i].base = base;
    __atomic_store_n(&spans[i].end, end, __ATOMIC_RELEASE);
    if (i == n_spans) __atomic_store_n(&n_spans, i + 1, __ATOMIC_RELEASE);
    return true;
}

void span_remove(uint64_t base) {
    for (size_t i = 0; i < n_spans; i++)
        if (spans[i].base == base) __atomic_store_n(&spans[i].end, 0, __ATOMIC_SEQ_CST);
}

struct region *span_region_at(uint64_t host_pc) {
    size_t n = __atomic_load_n(&n_spans, __ATOMIC_ACQUIRE);
    for (size_t i = 0; i < n; i++) {
        uint64_t end = __atomic_load_n(&spans[i].end, __ATOMIC_ACQUIRE);
        uint64_t base = __atomic_load_n(&spans[i].base, __ATOMIC_ACQUIRE);
        if (host_pc >= base && host_pc < end && __atomic_load_n(&spans[i].end, __ATOMIC_ACQUIRE) == end)
            return (struct region *)base;
    }
    return NULL;
}

bool span_overlaps(gaddr lo, gaddr hi) {
    size_t n = __atomic_load_n(&n_spans, __ATOMIC_ACQUIRE);
    for (size_t i = 0; i < n; i++) {
        uint64_t end = __atomic_load_n(&spans[i].end, __ATOMIC_ACQUIRE);
        if (end > lo && __atomic_load_n(&spans[i].base, __ATOMIC_ACQUIRE) < hi) return true;
    }
    return false;
}
