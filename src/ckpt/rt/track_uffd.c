/* Back end `uffd`: the kernel notes writes by itself. Mappings are registered when they are first collected; until then, and
 * after a move, all of their pages count as written. */
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/userfaultfd.h>

#include "ckpt/rt/saver.h"
#include "ckpt/rt/track.h"
#include "ckpt/rt/track_parts.h"
#include "engine/cache.h"
#include "inproc/arena.h"
#include "inproc/lock.h"
#include "inproc/pagemap_scan.h"
#include "inproc/sys.h"

/* Newer than the headers of many systems: linux/userfaultfd.h of 6.7. */
#define FEATURE_WP_UNPOPULATED (1ull << 13)
#define FEATURE_WP_ASYNC (1ull << 15)

#define REGIONS 4096
static struct scan_region *regions;
static int uffd, pagemap; /* numbers of the saver's */

static long scan_once(gaddr *at, gaddr end, bool is_new, bool protect) {
    struct scan s = {.size = sizeof s,
                     .flags = protect ? SCAN_PROTECT : 0,
                     .start = *at,
                     .end = end,
                     .vec = (uint64_t)regions,
                     .vec_len = REGIONS,
                     /* pages of the file itself and the zero page are nobody's writing */
                     .category_inverted = IS_FILE | IS_ZERO,
                     .category_mask = IS_FILE | IS_ZERO | (is_new ? 0u : IS_WRITTEN),
                     .category_anyof_mask = IS_PRESENT | IS_SWAPPED};
    long n = SYS(ioctl, pagemap, SCAN_IOCTL, &s);
    if (n >= 0) *at = scanned_up_to(&s, n);
    return n;
}

static bool is_registered(gaddr start, gaddr end) {
    struct uffdio_register r = {.range = {start, end - start}, .mode = UFFDIO_REGISTER_MODE_WP};
    return SYS(ioctl, uffd, UFFDIO_REGISTER, &r) == 0;
}

/* The kernel does not track this kind of memory, or it is somebody else's: it counts as new every time. */
static void stays_new(gaddr start, gaddr end) {
    lock_take(&cache_lock);
    track_changed(start, end);
    lock_drop(&cache_lock);
}

/* Without a fault of ours: the saver takes no signals. */
static void touch(gaddr at) {
    uint8_t byte;
    struct {
        uint64_t base, len;
    } here = {(uint64_t)&byte, 1}, there = {at, 1};
    long self = SYS(getpid);
    SYS(process_vm_readv, self, &here, 1, &there, 1, 0);
}

/* Where a page of a file was dropped, the kernel leaves a mark that looks like a page that is swapped out. Reading puts the
 * file's page in its place, and pages that are really swapped out where they were. */
static void read_swapped(gaddr start, gaddr end) {
    while (start < end) {
        struct scan s = {.size = sizeof s,
                         .start = start,
                         .end = end,
                         .vec = (uint64_t)regions,
                         .vec_len = REGIONS,
                         .category_mask = IS_SWAPPED,
                         .return_mask = IS_SWAPPED};
        long n = SYS(ioctl, pagemap, SCAN_IOCTL, &s);
        if (n < 0) return;
        for (long i = 0; i < n; i++)
            for (gaddr at = regions[i].start; at < regions[i].end; at += PAGE_SIZE) touch(at);
        start = scanned_up_to(&s, n);
    }
}

static enum collected collect(const struct mapping *m, gaddr start, gaddr end, bool is_new, struct ranges *out) {
    bool known = !is_new || is_registered(start, end);
    if (!known) stays_new(start, end);
    if (is_new && m->file.ino && (m->prot & PROT_READ)) read_swapped(start, end);
    while (start < end) {
        long n = scan_once(&start, end, is_new, known);
        if (n < 0) return n == -EPERM ? COLLECT_LOST : COLLECT_FAILED;
        for (long i = 0; i < n; i++) ranges_append(out, regions[i].start, regions[i].end);
    }
    return COLLECTED;
}

/* ---- starting ---- */

static void open_both(void *arg) {
    struct uffdio_api api = {.api = UFFD_API, .features = FEATURE_WP_UNPOPULATED | FEATURE_WP_ASYNC};
    bool *fine = arg;
    uffd = (int)SYS(userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    pagemap = (int)SYS(openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    *fine = uffd >= 0 && pagemap >= 0 && SYS(ioctl, uffd, UFFDIO_API, &api) == 0;
    if (!*fine) return;
    if (!regions) regions = arena_pages(REGIONS * sizeof *regions);
    gaddr at = (gaddr)regions;
    *fine = scan_once(&at, at + PAGE_SIZE, true, false) >= 0; /* whether the kernel has it at all */
}

static bool start(void) {
    bool fine = false;
    if (saver_start()) saver_do(open_both, &fine);
    return fine;
}

static void forget(void) {} /* the descriptors were the saver's, and it is not here */

const struct track_backend track_uffd = {.name = "uffd", .start = start, .forget = forget, .collect = collect};
