/* Some drivers map nowhere but where they choose themselves: io_uring refuses every address that it is given. The kernel takes the
 * highest gap below a place that is random for each process, and that may be among the runtime's own memory. */
#include <linux/mman.h>

#include "inproc/layout.h"
#include "inproc/sys.h"
#include "sphere/aspace_parts.h"

#define FILLS_MOST 128
#define FILL_LARGEST (1ull << 40)

struct fills { /* what is put into gaps, so that the kernel looks further down; one for each gap */
    struct {
        gaddr start;
        size_t len;
    } list[FILLS_MOST];
    int n;
};

static void add(struct fills *f, gaddr start, size_t len) {
    if (!f->n || f->list[f->n - 1].start != start + len) f->list[f->n++].len = 0;
    f->list[f->n - 1].start = start;
    f->list[f->n - 1].len += len;
}

/* Fills as much as possible of the gap that ends at `end`, at least its last `least` bytes. */
static bool fill_below(struct fills *f, gaddr end, size_t least) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    if (f->n == FILLS_MOST) return false;
    for (size_t len = FILL_LARGEST; len; len = len / 2 > least ? len / 2 : len > least ? least : 0) {
        if (len > end - LAYOUT_MMAP_TOP) continue;
        long got = SYS(mmap, end - len, len, PROT_NONE, flags, -1, 0);
        if (sys_failed(got)) continue;
        add(f, (gaddr)got, len);
        return (gaddr)got == end - len; /* a kernel that does not know the flag takes it for a wish */
    }
    return false;
}

long aspace_map_by_driver(size_t len, int prot, int flags, int fd, uint64_t offset) {
    struct fills f = {.n = 0};
    long got;
    for (;;) {
        got = SYS(mmap, 0, len, aspace_host_prot(prot), flags & ~MAP_FIXED, fd, offset);
        if (sys_failed(got) || aspace_is_usable((gaddr)got, len)) break;
        SYS(munmap, got, len);
        gaddr end = (gaddr)got + len;
        got = -ENOMEM;
        if (end <= LAYOUT_MMAP_TOP || !fill_below(&f, end, len)) break;
    }
    while (f.n--) SYS(munmap, f.list[f.n].start, f.list[f.n].len);
    return got;
}
