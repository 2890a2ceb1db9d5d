/* Where things go: libraries by their files, other memory from the top of its area down. */
#include <linux/elf.h>
#include <linux/mman.h>

#include "engine/cache.h"
#include "engine/spans.h"
#include "inproc/layout.h"
#include "inproc/lock.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/aspace_parts.h"

#define FILE_SLOT_ALIGN 0x40000ul /* library slots: room for kept translations even of small files */
#define BIG_MAPPING (16ul << 30)

bool aspace_is_runtime(gaddr start, size_t len) {
    gaddr end = start + len;
    for (size_t i = aspace_first_above(start); i < as->n && as->list[i].start < end; i++)
        if (as->list[i].runtime) return true;
    return aspace_overlap(start, end, LAYOUT_TABLES, LAYOUT_CACHE_END) ||
           aspace_overlap(start, end, LAYOUT_RT, LAYOUT_THREADS_END) ||
           (aspace_overlap(start, end, LAYOUT_KEPT_BASE, LAYOUT_KEPT_END) &&
            span_overlaps(MAX(start, LAYOUT_KEPT_BASE), MIN(end, LAYOUT_KEPT_END)));
}

bool aspace_is_usable(gaddr start, size_t len) {
    return start + len > start && start + len <= LAYOUT_GUEST_END && !aspace_is_runtime(start, len) &&
           !aspace_overlap(start, start + len, LAYOUT_KEPT_BASE, LAYOUT_KEPT_END) && aspace_is_free(start, start + len);
}

bool aspace_is_barred(gaddr start, size_t len) {
    if (likely(!aspace_is_runtime(start, len))) return false;
    cache_make_way(start, start + len);
    return aspace_is_runtime(start, len);
}

#define GROWTH_GAP (256 * PAGE_SIZE) /* the kernel lets nothing grow closer to what is below */

static gaddr room_ends(const struct mapping *m) {
    return m->start - (m->flags & MAP_GROWSDOWN ? MIN(m->start, GROWTH_GAP) : 0);
}

static gaddr find_down(gaddr base, gaddr top, size_t len) {
    gaddr hi = top;
    size_t i = aspace_first_above(top - 1);
    if (i < as->n && room_ends(&as->list[i]) < hi) hi = room_ends(&as->list[i]);
    for (;;) {
        gaddr below = i > 0 ? as->list[i - 1].end : 0;
        gaddr floor = MAX(below, base);
        if (hi > floor && hi - floor >= len) return hi - len;
        if (i == 0 || below <= base) return 0;
        i--;
        hi = room_ends(&as->list[i]);
    }
}

/* Large files have the library area up to LARGE_END for themselves, as long as the others find room behind it. */
#define LARGE_FILE (16ul << 20)
#define LARGE_END (LAYOUT_LIB_END - (64ul << 20))
#define LARGE_STIR (8ul << 20) /* how far from an end of that part they may be */
#define HUGE_MOST (512ul << 20)

/* The first slot in a part of the library area that is free, from slot `from` on and round again. */
static gaddr find_slot(gaddr base, gaddr end, uint64_t from, size_t span) {
    uint64_t slots = (end - base) / FILE_SLOT_ALIGN;
    for (uint64_t k = 0; k < slots; k++) {
        gaddr at = base + ((from + k) % slots) * FILE_SLOT_ALIGN;
        if (at + span <= end && aspace_is_free(at, at + span)) return at;
    }
    return 0;
}

/* At one end or the other: anywhere else, two of them could leave no room for a third in one piece. */
static gaddr find_for_large(uint64_t h, size_t span) {
    uint64_t stir = (h >> 1) % (LARGE_STIR / FILE_SLOT_ALIGN) * FILE_SLOT_ALIGN;
    for (int i = 0; i < 2 && span + stir <= LARGE_END - LAYOUT_LIB_BASE; i++) {
        gaddr at = (h + (uint64_t)i) & 1 ? LAYOUT_LIB_BASE + stir : LARGE_END - span - stir;
        if (aspace_is_free(at, at + span)) return at;
    }
    return find_slot(LAYOUT_LIB_BASE, LAYOUT_LIB_END, 0, span);
}

static uint64_t hash_of_file(const struct file_id *id) {
    return aspace_mix(aspace_mix(aspace_mix(as->seed, id->dev), id->ino), id->mtime_ns);
}

/* A program that is too large for the library area (chromium) is near the end of the low 2 GB, where its code has kept translations, too. */
static gaddr find_for_huge(const struct file_id *id, size_t span) {
    if (span > HUGE_MOST) return 0;
    gaddr at = LAYOUT_LOW_MMAP_END - hash_of_file(id) % (LARGE_STIR / FILE_SLOT_ALIGN) * FILE_SLOT_ALIGN - span;
    return aspace_is_free(at, at + span) ? at : 0;
}

/* A slot in the library area that depends on nothing but the file, as long as it is free. */
static gaddr find_by_file(const struct file_id *id, size_t len) {
    uint64_t h = hash_of_file(id);
    size_t span = (len + FILE_SLOT_ALIGN - 1) & ~(FILE_SLOT_ALIGN - 1);
    if (len >= LARGE_FILE) return find_for_large(h, span);
    gaddr at = find_slot(LARGE_END, LAYOUT_LIB_END, h, span);
    return at ? at : find_slot(LAYOUT_LIB_BASE, LAYOUT_LIB_END, h, span);
}

#define FDS_MOST 12 /* a dynamic linker has few open */
#define SEGMENTS_MOST 16

/* How much a dynamic linker reserves for the library before it maps it; 0: nothing, no segment asks for more than a page's alignment. */
static uint64_t reserve_of(int fd) {
    Elf64_Ehdr h;
    Elf64_Phdr part[SEGMENTS_MOST];
    if (SYS(pread64, fd, &h, sizeof h, 0) != sizeof h || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 ||
        h.e_type != ET_DYN || h.e_phnum > SEGMENTS_MOST || h.e_phentsize != sizeof *part)
        return 0;
    long bytes = (long)(h.e_phnum * sizeof *part);
    if (SYS(pread64, fd, part, bytes, h.e_phoff) != bytes) return 0;
    uint64_t end = 0, align = PAGE_SIZE;
    for (int i = 0; i < h.e_phnum; i++) {
        if (part[i].p_type != PT_LOAD) continue;
        end = MAX(end, part[i].p_vaddr + part[i].p_memsz);
        align = MAX(align, part[i].p_align);
    }
    return align > PAGE_SIZE ? PAGE_UP(end + align) : 0;
}

bool aspace_reserved_for(size_t len, struct file_id *id) {
    for (int fd = 3; fd < FDS_MOST; fd++)
        if (file_identify(fd, id) && reserve_of(fd) == len) return true;
    return false;
}

gaddr aspace_mmap_top(void) { return MIN(LAYOUT_MMAP_TOP, as->stack_top ? as->stack_top - STACK_ROOM : UINT64_MAX); }

gaddr aspace_pick(size_t len, int flags, const struct file_id *file) {
    gaddr at, top = MIN(as->top_hint, aspace_mmap_top());
    aspace_note_growth();
    if (flags & MAP_32BIT) {
        at = find_down(LAYOUT_LOW_MMAP, LAYOUT_LOW_MMAP_END, len);
        return at ? at : find_down(LAYOUT_LIB_BASE, LAYOUT_LIB_END, len);
    }
    if (file && len <= (256ul << 20) && (at = find_by_file(file, len))) return at;
    if (file && len >= LARGE_FILE && (at = find_for_huge(file, PAGE_UP(len)))) return at;
    if (len >= BIG_MAPPING && (at = find_down(LAYOUT_BIG_BASE, LAYOUT_BIG_TOP, len))) return at;
    at = find_down(LAYOUT_MMAP_BASE, top, len);
    if (at) {
        if (at + len == top) as->top_hint = at;
        return at;
    }
    at = find_down(LAYOUT_MMAP_BASE, LAYOUT_MMAP_TOP, len);
    return at ? at : find_down(LAYOUT_BIG_BASE, LAYOUT_BIG_TOP, len);
}

gaddr aspace_place(size_t len, size_t align, int fd) {
    struct file_id id = {0};
    bool file = file_identify(fd, &id);
    size_t room = len + (align > FILE_SLOT_ALIGN ? align : 0),
           span = (room + FILE_SLOT_ALIGN - 1) & ~(FILE_SLOT_ALIGN - 1);
    lock_take(&cache_lock);
    gaddr at = file && span > LARGE_END - LAYOUT_LIB_BASE ? find_for_huge(&id, span) : 0;
    if (!at) at = aspace_pick(room, 0, file ? &id : NULL);
    lock_drop(&cache_lock);
    if (at && align > PAGE_SIZE) at = (at + align - 1) & ~(uint64_t)(align - 1);
    return at;
}
