/* A stand-in for src/sphere/aspace.c in tests of the loader: real mappings in the test's own process, and a check of every
 * request. The loader may replace pages only where it was given a place or made a claim before. */
#ifndef REPRISE_FAKE_ASPACE_H
#define REPRISE_FAKE_ASPACE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "sphere/aspace.h"

#define FAKE_LOW 0x10000ull /* non-PIE files may claim addresses in here */
#define FAKE_HIGH 0x70000000ull
#define FAKE_MAX (4ull << 30) /* larger requests: no memory */

static struct { gaddr start, end; } fake_owned[4096];
static size_t fake_count;
static gaddr fake_break;
static gaddr fake_stack; /* what "[stack]" was given to */

#define FAKE_CHECK(cond)                                                                                \
    do {                                                                                                \
        if (!(cond)) {                                                                                  \
            fprintf(stderr, "loader asked for something it must not: %s (line %d)\n", #cond, __LINE__); \
            abort();                                                                                    \
        }                                                                                               \
    } while (0)

static void fake_own(gaddr start, gaddr end) {
    FAKE_CHECK(fake_count < ARRAY_LEN(fake_owned));
    fake_owned[fake_count].start = start;
    fake_owned[fake_count++].end = end;
}

static bool fake_owns(gaddr start, gaddr end) {
    for (size_t i = 0; i < fake_count; i++)
        if (fake_owned[i].start <= start && end <= fake_owned[i].end) return true;
    return false;
}

/* Unmaps all; for between two loads. */
static void fake_reset(void) {
    while (fake_count) {
        fake_count--;
        munmap((void *)fake_owned[fake_count].start, fake_owned[fake_count].end - fake_owned[fake_count].start);
    }
    fake_break = fake_stack = 0;
}

gaddr aspace_place(size_t len, size_t align, int fd) {
    FAKE_CHECK(len > 0 && len == PAGE_UP(len) && fd >= 0);
    FAKE_CHECK(align >= PAGE_SIZE && (align & (align - 1)) == 0);
    if (len > FAKE_MAX || align > FAKE_MAX) return 0;
    char *p = mmap(NULL, len + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return 0;
    gaddr at = ((gaddr)p + align - 1) & ~(align - 1);
    if (at != (gaddr)p) munmap(p, at - (gaddr)p);
    if ((gaddr)p + align != at) munmap((void *)(at + len), (gaddr)p + align - at);
    fake_own(at, at + len);
    return at;
}

long aspace_mmap(gaddr addr, size_t len, int prot, int flags, int fd, uint64_t offset) {
    bool exact = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE);
    FAKE_CHECK(len > 0 && len == PAGE_UP(len));
    FAKE_CHECK(addr == PAGE_DOWN(addr) && (exact || addr == 0));
    FAKE_CHECK(addr + len > addr && addr + len <= 0x7ffffffff000ull);
    FAKE_CHECK(flags & MAP_PRIVATE);
    FAKE_CHECK((flags & MAP_ANONYMOUS) ? fd == -1
                                       : fd >= 0 && offset == PAGE_DOWN(offset) && (int64_t)(offset + len) > 0);
    if (len > FAKE_MAX) return -ENOMEM;
    if (flags & MAP_FIXED) FAKE_CHECK(fake_owns(addr, addr + len));
    if ((flags & MAP_FIXED_NOREPLACE) && (addr < FAKE_LOW || addr + len > FAKE_HIGH)) return -EEXIST;

    void *p = mmap((void *)addr, len, prot, flags, fd, (off_t)offset);
    if (p == MAP_FAILED) return -errno;
    if (!(flags & MAP_FIXED)) fake_own((gaddr)p, (gaddr)p + len);
    return (long)p;
}

long aspace_munmap(gaddr addr, size_t len) {
    FAKE_CHECK(fake_owns(addr, addr + len));
    return munmap((void *)addr, len) ? -errno : 0;
}

long aspace_mprotect(gaddr addr, size_t len, int prot) {
    FAKE_CHECK(fake_owns(addr, addr + len));
    return mprotect((void *)addr, len, prot) ? -errno : 0;
}

void aspace_set_brk(gaddr start) {
    FAKE_CHECK(start == PAGE_DOWN(start));
    fake_break = start;
}

void aspace_name(gaddr addr, const char *name) {
    FAKE_CHECK(fake_owns(addr, addr + 1) && strcmp(name, "[stack]") == 0);
    fake_stack = addr;
}

#endif
