/* The list of the program's mappings, and of the cache windows among them. */
#include <linux/fcntl.h>

#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/aspace_parts.h"

uint64_t aspace_changes;

size_t aspace_first_above(gaddr addr) {
    size_t lo = 0, hi = as->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (as->list[mid].end > addr)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

#define MANY_MAPPINGS 30000
#define OWN_MAPPINGS 1000 /* that the kernel counts and the program does not have */

bool aspace_has_too_many(void) {
    static size_t most;
    if (likely(as->n < MANY_MAPPINGS)) return false;
    if (!most) {
        char text[32];
        long fd = SYS(openat, AT_FDCWD, "/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
        long n = fd >= 0 ? SYS(read, fd, text, sizeof text) : 0;
        if (fd >= 0) SYS(close, fd);
        size_t count = 0;
        for (long i = 0; i < n && text[i] >= '0' && text[i] <= '9'; i++) count = count * 10 + (size_t)(text[i] - '0');
        most = MIN(count > MANY_MAPPINGS ? count : 65530, as->most) - OWN_MAPPINGS;
    }
    return as->n >= most;
}

bool aspace_is_free(gaddr start, gaddr end) {
    size_t i = aspace_first_above(start);
    return i == as->n || as->list[i].start >= end;
}

/* The list has room at both ends, and what is on the shorter side moves: programs that map tens of thousands of pieces do so at
 * one end of the mmap area. */
static void list_insert(size_t i, const struct mapping *m) {
    CHECK(as->n < as->most);
    bool up = as->list == as->room || (i > as->n / 2 && as->list + as->n < as->room + as->most);
    if (!up) as->list--;
    if (up)
        memmove(&as->list[i + 1], &as->list[i], (as->n - i) * sizeof *m);
    else
        memmove(&as->list[0], &as->list[1], i * sizeof *m);
    as->list[i] = *m;
    as->n++;
}

/* Those from i to k. */
static void list_delete(size_t i, size_t k) {
    if (i > as->n - k) {
        memmove(&as->list[i], &as->list[k], (as->n - k) * sizeof *as->list);
    } else {
        memmove(&as->list[k - i], &as->list[0], i * sizeof *as->list);
        as->list += k - i;
    }
    as->n -= k - i;
}

void aspace_list_split(gaddr addr) {
    aspace_changes++;
    size_t i = aspace_first_above(addr);
    if (i == as->n || as->list[i].start >= addr) return;
    struct mapping upper = as->list[i];
    upper.offset += addr - upper.start;
    upper.start = addr;
    as->list[i].end = addr;
    list_insert(i + 1, &upper);
}

void aspace_list_carve(gaddr start, gaddr end) {
    aspace_changes++;
    aspace_list_split(start);
    aspace_list_split(end);
    size_t i = aspace_first_above(start), k = i;
    while (k < as->n && as->list[k].start < end) k++;
    if (k > i) list_delete(i, k);
}

void aspace_list_carve_guest(gaddr start, gaddr end) {
    for (size_t i = aspace_first_above(start); i < as->n && as->list[i].start < end; i = aspace_first_above(start)) {
        gaddr stop = MIN(as->list[i].end, end);
        if (!as->list[i].runtime) aspace_list_carve(start, stop);
        start = stop;
    }
}

static bool same_kind(const struct mapping *a, const struct mapping *b) {
    return a->end == b->start && a->prot == b->prot && a->flags == b->flags && a->file.ino == b->file.ino &&
           a->file.dev == b->file.dev && a->was_writable == b->was_writable && a->runtime == b->runtime &&
           a->object == b->object && a->tracked == b->tracked && a->shows_shared == b->shows_shared &&
           a->borrowed == b->borrowed && a->guarded == b->guarded &&
           ((a->file.ino == 0 && !a->object) || a->offset + (a->end - a->start) == b->offset) &&
           strcmp(a->name, b->name) == 0 && (a->name[0] == '\0' || strcmp(a->name, "[heap]") == 0);
}

void aspace_list_merge(gaddr start, gaddr end) {
    aspace_changes++;
    size_t i = aspace_first_above(start);
    if (i > 0) i--;
    while (i + 1 < as->n && as->list[i].start <= end) {
        if (same_kind(&as->list[i], &as->list[i + 1])) {
            as->list[i].end = as->list[i + 1].end;
            list_delete(i + 1, i + 2);
        } else {
            i++;
        }
    }
}

void aspace_list_add(const struct mapping *m) {
    aspace_list_carve(m->start, m->end);
    list_insert(aspace_first_above(m->start), m);
    aspace_list_merge(m->start, m->end);
}
