/* The parts of the address space for each other: aspace.c (calls), aspace_place.c (where things go), aspace_list.c,
 * aspace_stack.c, aspace_driver.c. Under cache_lock. */
#ifndef REPRISE_ASPACE_PARTS_H
#define REPRISE_ASPACE_PARTS_H

#include "sphere/aspace.h"

struct aspace {
    struct mapping *list; /* sorted by start, disjoint */
    struct mapping *room; /* for `most` of them, list somewhere inside */
    size_t n, most;
    gaddr brk_start, brk_end; /* brk_end: what the program was told, not page aligned */
    bool grows;               /* some of it has MAP_GROWSDOWN */
    gaddr top_hint;           /* nothing free between here and LAYOUT_MMAP_TOP */
    gaddr stack_top;
    uint64_t seed; /* where libraries go */
};

static struct aspace *const as = &the_aspace;

/* ---- aspace_list.c ---- */

/* Index of the first mapping that ends above addr. */
size_t aspace_first_above(gaddr addr);
/* The kernel's limit is for program and runtime together: some are kept for us. */
bool aspace_has_too_many(void);
/* Splits the mapping that contains addr in its middle, if any. */
void aspace_list_split(gaddr addr);
/* Mappings of one kind that touch become one. */
void aspace_list_merge(gaddr start, gaddr end);
void aspace_list_carve(gaddr start, gaddr end);
/* The same, sparing cache windows. */
void aspace_list_carve_guest(gaddr start, gaddr end);
void aspace_list_add(const struct mapping *m);

/* ---- aspace.c ---- */

/* There is room again in the mmap area. */
void aspace_freed(gaddr start, gaddr end);
/* Memory with MAP_GROWSDOWN has grown since we looked, when the program or the kernel touched what is below it. */
void aspace_note_growth(void);

/* ---- aspace_place.c ---- */

static inline bool aspace_overlap(gaddr start, gaddr end, gaddr lo, gaddr hi) { return start < hi && end > lo; }

static inline uint64_t aspace_mix(uint64_t h, uint64_t v) {
    h = (h ^ v) * 0x9e3779b97f4a7c15ull;
    return h ^ h >> 29;
}

/* Whether the program's memory may be placed there. Room for kept translations is used only if nothing else will do. */
bool aspace_is_usable(gaddr start, size_t len);
/* Whether the runtime stays in the way of what has to be at this very place: the program says so, or its recording, and the
 * windows and kept regions of translated code need not be where they were then. */
bool aspace_is_barred(gaddr start, size_t len);
gaddr aspace_mmap_top(void);
/* glibc reserves room for a library with large alignment before it maps it: whether a file that is open is one which needs so much. */
bool aspace_reserved_for(size_t len, struct file_id *id);
/* A free place, flags as mmap() has them; file: private code and data of one. 0: none. */
gaddr aspace_pick(size_t len, int flags, const struct file_id *file);

/* ---- aspace_driver.c ---- */

/* mmap() of a file that is mapped only where its driver wants. */
long aspace_map_by_driver(size_t len, int prot, int flags, int fd, uint64_t offset);

/* ---- aspace_stack.c ---- */

#define STACK_AT_FIRST 0x22000 /* of the stack, natively only what was used is mapped; it is hardly ever more */

/* Below the stack there is room for a higher limit, as much as the kernel leaves. */
#define STACK_ROOM (129ul << 20)

bool aspace_is_stack(const struct mapping *m);
bool aspace_is_stack_guard(size_t i);
/* *start: of the stack's mapping that holds addr. */
bool aspace_is_in_stack(gaddr addr, gaddr *start);
/* The program maps memory where only the stack could be, or has freed such memory. */
void aspace_stack_makes_way(gaddr start, gaddr end, int prot);
void aspace_stack_takes_room(gaddr start, gaddr end);

#endif
