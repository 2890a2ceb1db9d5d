#include "engine/kept_place.h"

#include "engine/engine.h"
#include "inproc/hash.h"
#include "inproc/layout.h"

#define STEP (1ul << 20)
#define AMPLE 6 /* times the code: as much as a program has ever needed that executes most of its code */
#define SPARE 2 /* times the code, of files so large that nobody executes most of it */
#define LARGE (96ul << 20)
#define LEAST (256ul << 10)
#define MOST ((LAYOUT_KEPT_END - LAYOUT_KEPT_BASE) / 2)

static uint64_t size_for(const struct kept_file *f) {
    uint64_t text = f->text_end - f->text_start, ample = MIN(text * AMPLE, LARGE);
    return MIN((MAX(ample, text * SPARE) + STEP - 1) & ~(STEP - 1), MOST);
}

static bool is_low(const struct kept_file *f) { return f->base < LAYOUT_LIB_BASE; }

/* There is only one such program in a process: all its code fits. */
static struct kept_place low_place(const struct kept_file *f) {
    return (struct kept_place){LAYOUT_KEPT_LOW,
                               MIN(f->span * LAYOUT_KEPT_LOW_SCALE, LAYOUT_KEPT_LOW_END - LAYOUT_KEPT_LOW)};
}

bool kept_place_is_valid(const struct kept_place *p, const struct kept_file *f) {
    if (is_low(f)) return p->base == low_place(f).base && p->size == low_place(f).size;
    return p->base % STEP == 0 && p->size % LEAST == 0 && p->size && p->base >= LAYOUT_KEPT_BASE &&
           p->base < LAYOUT_KEPT_END && p->size <= LAYOUT_KEPT_END - p->base;
}

static bool is_free(uint64_t base, uint64_t size) {
    if (!engine_host.is_free(base, base + size)) return false;
    for (const struct region *r = region_first(); r; r = r->next)
        if (base < (uint64_t)r->end && base + size > (uint64_t)r->base) return false;
    return true;
}

struct kept_place kept_place_find(const struct kept_file *f, uint64_t not ) {
    if (is_low(f)) return low_place(f);
    uint64_t h = hash_bytes(f, sizeof *f, not ), steps = (LAYOUT_KEPT_END - LAYOUT_KEPT_BASE) / STEP;
    for (uint64_t size = size_for(f); size >= LEAST; size = size / 2 & ~(LEAST - 1))
        for (uint64_t k = 0; k < steps; k++) {
            uint64_t base = LAYOUT_KEPT_BASE + (h + k) % steps * STEP;
            if (base + size <= LAYOUT_KEPT_END && is_free(base, size)) return (struct kept_place){base, size};
        }
    return (struct kept_place){0, 0};
}
