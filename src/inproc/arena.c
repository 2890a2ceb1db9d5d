#include "inproc/arena.h"

#include <linux/mman.h>

#include "inproc/fmt.h"
#include "inproc/layout.h"
#include "inproc/lock.h"
#include "inproc/sys.h"

static uint64_t next_page = LAYOUT_RT_ARENA;
static struct lock small_lock;
static char *small_next, *small_end;

static void *map_next(size_t bytes, int extra_flags) {
    bytes = PAGE_UP(bytes);
    /* one unmapped page between neighbours catches overruns */
    uint64_t at = __atomic_fetch_add(&next_page, bytes + PAGE_SIZE, __ATOMIC_RELAXED);
    CHECK(at + bytes <= LAYOUT_RT_ARENA_END);
    long got = SYS(mmap, at, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | extra_flags, -1, 0);
    if (got != (long)at) return NULL;
    SYS(madvise, at, bytes, 16 /* MADV_DONTDUMP */);
    return (void *)at;
}

void *arena_try_pages(size_t bytes) { return map_next(bytes, 0); }

static void *or_die(void *p, size_t bytes) {
    if (!p) die("out of memory for the runtime (%lu bytes)", (unsigned long)bytes);
    return p;
}

void *arena_pages(size_t bytes) { return or_die(map_next(bytes, 0), bytes); }

void *arena_reserve(size_t bytes) { return or_die(map_next(bytes, MAP_NORESERVE), bytes); }

void arena_free_pages(void *p, size_t bytes) { SYS(munmap, p, PAGE_UP(bytes)); }

void *arena_alloc(size_t bytes) {
    bytes = (bytes + 15) & ~15ull;
    if (bytes > 65536) return arena_pages(bytes);
    lock_take(&small_lock);
    if ((size_t)(small_end - small_next) < bytes) {
        small_next = arena_pages(1 << 20);
        small_end = small_next + (1 << 20);
    }
    void *p = small_next;
    small_next += bytes;
    lock_drop(&small_lock);
    return p;
}

void arena_hold(void) { lock_take(&small_lock); }
void arena_release(void) { lock_drop(&small_lock); }
