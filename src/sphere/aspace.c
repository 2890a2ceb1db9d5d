#include "sphere/aspace.h"

#include <asm/stat.h>
#include <linux/mman.h>
#include <linux/personality.h>

#include "ckpt/rt/track.h"
#include "engine/cache.h"
#include "inproc/arena.h"
#include "inproc/fmt.h"
#include "inproc/layout.h"
#include "inproc/lock.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/aspace_parts.h"
#include "sphere/code_files.h"
#include "sphere/code_watch.h"
#include "sphere/debug.h"
#include "sphere/mode.h"
#include "sphere/shared.h"
#include "sphere/sys/proc_maps.h"
#include "sphere/sys/special.h"
#include "sphere/thread.h"

#define MAX_MAPPINGS 1000000
#define FEW_MAPPINGS 20000
#define FEW_MAPPINGS_BELOW (4ul << 30) /* bytes of address space that we may have */

struct aspace the_aspace = {.top_hint = LAYOUT_MMAP_TOP};

/* What the kernel is told: the program's pages are never executed in place, and code must be readable. */
int aspace_host_prot(int prot) {
    if (prot & PROT_EXEC) prot |= PROT_READ;
    return prot & ~PROT_EXEC;
}

void aspace_note_growth(void) {
    for (size_t i = 0; unlikely(as->grows) && i < as->n; i++) {
        struct mapping *m = &as->list[i];
        unsigned char resident;
        while ((m->flags & MAP_GROWSDOWN) && !m->runtime && aspace_is_free(m->start - PAGE_SIZE, m->start) &&
               SYS(mincore, m->start - PAGE_SIZE, PAGE_SIZE, &resident) == 0)
            m->start -= PAGE_SIZE;
    }
}

/* Changed so recently that another change may leave the same times behind: they come from a clock that ticks at 100 Hz. */
static bool is_young(const struct file_id *id) {
    int64_t now[2];
    if (SYS(clock_gettime, 0 /* CLOCK_REALTIME */, now) != 0) return true;
    return now[0] * 1000000000ll + now[1] - (int64_t)id->ctime_ns < 20000000;
}

/* ---- huge pages ---- */

#define HUGE_SIZE_SHIFT 26 /* MAP_HUGE_SHIFT */
#define HUGE_SIZE_MASK 63
#define HUGE_SIZE_MOST 30 /* a power of two; the kernel refuses others, wherever they are to be */
#define MFD_HUGETLB_ 4

/* The size that the machine has been started with shows in files of such pages. */
static size_t default_huge_page(void) {
    struct stat st;
    long fd = SYS(memfd_create, "", MFD_HUGETLB_);
    bool known = fd >= 0 && SYS(fstat, fd, &st) == 0;
    if (fd >= 0) SYS(close, fd);
    return known ? (size_t)st.st_blksize : 2ul << 20;
}

static size_t page_of(int flags) {
    if (likely((flags & (MAP_ANONYMOUS | MAP_HUGETLB)) != (MAP_ANONYMOUS | MAP_HUGETLB))) return PAGE_SIZE;
    unsigned shift = (unsigned)flags >> HUGE_SIZE_SHIFT & HUGE_SIZE_MASK;
    if (!shift) return default_huge_page();
    return shift > HUGE_SIZE_MOST ? PAGE_SIZE : MAX(1ul << shift, PAGE_SIZE);
}

size_t aspace_mmap_size(size_t len, int flags) {
    size_t page = page_of(flags);
    return (len + page - 1) & ~(page - 1);
}

static gaddr pick_aligned(size_t len, size_t page, int flags, const struct file_id *file) {
    if (likely(page == PAGE_SIZE)) return aspace_pick(len, flags, file);
    gaddr at = aspace_pick(len + page - PAGE_SIZE, flags, NULL);
    return (at + page - 1) & ~(page - 1);
}

/* A recording's memory is closed and compared by small pages: it has those, once the kernel has said that it would grant others. */
static long map_small_instead(gaddr at, size_t len, int prot, int flags) {
    long got = SYS(mmap, at, len, PROT_NONE, flags, -1, 0);
    if (sys_failed(got)) return got;
    return SYS(mmap, at, len, prot, flags & ~(MAP_HUGETLB | (HUGE_SIZE_MASK << HUGE_SIZE_SHIFT)), -1, 0);
}

/* ---- the program's limits ---- */

static bool is_data(uint32_t prot, uint32_t flags) { return (prot & PROT_WRITE) && (flags & MAP_TYPE) == MAP_PRIVATE; }

static uint64_t counted(const struct mapping *m) {
    if (m->runtime) return 0;
    return aspace_is_stack(m) ? MIN(m->end - m->start, STACK_AT_FIRST) : m->end - m->start;
}

static uint64_t own_size(size_t i) { return aspace_is_stack_guard(i) ? 0 : counted(&as->list[i]); }

/* Whether `more` bytes, of private writable memory or other, fit into RLIMIT_AS and RLIMIT_DATA. */
static bool within_limits(uint64_t more, bool data) {
    const struct limits *l = &thread_self()->process->limits;
    if (likely(l->as.soft == LIMIT_INFINITY && l->data.soft == LIMIT_INFINITY)) return true;
    uint64_t all = more, private_data = data ? more : 0;
    for (size_t i = 0; i < as->n; i++) {
        const struct mapping *m = &as->list[i];
        all += own_size(i);
        if (is_data(m->prot, m->flags) && !m->name[0]) private_data += own_size(i);
    }
    if (all > l->as.soft) return false;
    return !data || private_data <= l->data.soft;
}

bool aspace_lock_memory(uint64_t most, bool on_fault) {
    uint64_t all = 0;
    lock_take(&cache_lock);
    for (size_t i = 0; i < as->n; i++) all += own_size(i);
    for (size_t i = 0; i < as->n && all <= most; i++)
        if (own_size(i)) SYS(mlock2, as->list[i].end - own_size(i), own_size(i), on_fault);
    lock_drop(&cache_lock);
    return all <= most;
}

static uint64_t mapped_in(gaddr start, gaddr end) {
    uint64_t n = 0;
    for (size_t i = aspace_first_above(start); i < as->n && as->list[i].start < end; i++)
        n += MIN(as->list[i].end, end) - MAX(as->list[i].start, start);
    return n;
}

/* ---- shared memory ---- */

static bool is_shared(uint32_t flags) { return (flags & MAP_TYPE) != MAP_PRIVATE; }

/* A new mapping of shared memory gets its number. */
static void number_shared(struct mapping *m) {
    if (m->object) return;
    m->object = m->flags & MAP_ANONYMOUS ? shared_anonymous() : shared_file(&m->file);
    if (m->flags & MAP_ANONYMOUS) m->offset = 0;
}

/* A mapping that is tracked is new: so are all others of the same memory from now on. */
static void track_all(const struct mapping *m) {
    uint64_t object = m->object;
    size_t at = aspace_first_above(m->start) + 1;
    if (at < as->n && as->list[at].object == object && as->list[at].tracked) return; /* they all are */
    for (size_t i = 0; i < as->n; i++) {
        if (as->list[i].object != object || as->list[i].tracked || as->list[i].shows_shared) continue;
        as->list[i].tracked = true;
        shared_reprotect(as->list[i].start, as->list[i].end);
    }
}

static void add_shared(const struct mapping *m) {
    aspace_list_add(m);
    if (!m->tracked) return;
    shared_reprotect(m->start, m->end);
    track_all(m);
}

/* Caller holds cache_lock. */
static const struct mapping *find_page(uint64_t object, uint64_t offset) {
    for (size_t i = 0; i < as->n; i++) {
        const struct mapping *m = &as->list[i];
        if (m->object == object && !m->shows_shared && m->offset <= offset && offset - m->offset < m->end - m->start)
            return m;
    }
    return NULL;
}

bool aspace_find_page(uint64_t object, uint64_t offset, struct mapping *out) {
    lock_take(&cache_lock);
    const struct mapping *m = find_page(object, offset);
    if (m) *out = *m;
    lock_drop(&cache_lock);
    return m;
}

/* Shared anonymous memory that the program has opened as a file, and has mapped: *out is where it has the first page. A replay needs
 * that one. 1: so it is; 0: something else. */
static long find_anonymous(int fd, uint64_t offset, struct mapping *out) {
    uint64_t ino;
    if (!file_is_anonymous(fd, &ino) || !aspace_find(maps_anonymous(ino), out) || !out->object) return 0;
    return aspace_find_page(out->object, offset, out) ? 1 : -ENOMEM;
}

const struct mapping *aspace_next(gaddr addr) {
    size_t i = aspace_first_above(addr);
    return i < as->n ? &as->list[i] : NULL;
}

void aspace_track(gaddr addr) {
    size_t i = aspace_first_above(addr);
    if (i < as->n && as->list[i].start <= addr) as->list[i].tracked = true;
}

void aspace_show_shared(gaddr addr, uint64_t object) {
    struct mapping *m = &as->list[aspace_first_above(addr)];
    m->object = object;
    m->shows_shared = true;
    m->was_writable = true; /* kept translations are those of the file as it was */
}

void aspace_borrow(gaddr start, gaddr end, bool borrowed) {
    aspace_list_split(start);
    aspace_list_split(end);
    for (size_t i = aspace_first_above(start); i < as->n && as->list[i].start < end; i++)
        as->list[i].borrowed = borrowed;
    aspace_list_merge(start, end);
}

/* ---- guards ---- */

void aspace_guard(gaddr start, gaddr end, bool guarded) {
    lock_take(&cache_lock);
    aspace_list_split(start);
    aspace_list_split(end);
    for (size_t i = aspace_first_above(start); i < as->n && as->list[i].start < end; i++)
        if (!as->list[i].runtime) as->list[i].guarded = guarded;
    aspace_list_merge(start, end);
    lock_drop(&cache_lock);
}

void aspace_guard_again(gaddr start, gaddr end) {
    for (size_t i = aspace_first_above(start); i < as->n && as->list[i].start < end; i++) {
        gaddr lo = MAX(as->list[i].start, start), hi = MIN(as->list[i].end, end);
        if (unlikely(as->list[i].guarded)) SYS(madvise, lo, hi - lo, ADVICE_GUARD_INSTALL);
    }
}

/* ---- calls ---- */

void aspace_freed(gaddr start, gaddr end) {
    if (end > as->top_hint && start < LAYOUT_MMAP_TOP) as->top_hint = MIN(end, LAYOUT_MMAP_TOP);
}

long aspace_mmap(gaddr addr, size_t len, int prot, int flags, int fd, uint64_t offset) {
    if (len == 0) return -EINVAL;
    if (len > LAYOUT_GUEST_END) return -ENOMEM;
    const size_t page = page_of(flags);
    len = aspace_mmap_size(len, flags);
    struct file_id id = {0};
    if (the_mode->tracks && is_shared((uint32_t)flags) && !(flags & MAP_ANONYMOUS) && file_is_zero(fd)) {
        flags |= MAP_ANONYMOUS;
        fd = -1;
        offset = 0;
    }
    bool anonymous = flags & MAP_ANONYMOUS;
    bool shared = the_mode->tracks && is_shared((uint32_t)flags);
    struct mapping first;
    long again = shared && !anonymous ? find_anonymous(fd, offset, &first) : 0;
    if (again < 0) return again;
    bool file = !anonymous && !again && file_identify(fd, &id);
    bool tracked = file && shared && the_mode->tracks(fd, shared_file(&id));
    if (tracked && offset >= SHARED_ROOM) return -ENOMEM; /* a replay has no place for it */
    if (file && the_mode->keep_file) the_mode->keep_file(fd, &id, tracked);
    bool for_file = file && (flags & MAP_TYPE) == MAP_PRIVATE;
    if (!addr && !prot && flags == (MAP_PRIVATE | MAP_ANONYMOUS)) for_file = aspace_reserved_for(len, &id);
    lock_take(&cache_lock);
    aspace_note_growth();
    bool fixed = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE);
    gaddr at = addr;
    if (fixed) aspace_stack_makes_way(at, at + len, prot);
    if (fixed) {
        if (at & ~PAGE_MASK) return lock_drop(&cache_lock), -EINVAL;
        if (at + len < at || at + len > LAYOUT_GUEST_END) return lock_drop(&cache_lock), -ENOMEM;
        if (aspace_is_barred(at, len)) return lock_drop(&cache_lock), -ENOMEM;
        if ((flags & MAP_FIXED_NOREPLACE) && !aspace_is_free(at, at + len)) return lock_drop(&cache_lock), -EEXIST;
    } else {
        at = page == PAGE_SIZE ? PAGE_DOWN(addr) : (addr + page - 1) & ~(page - 1);
        bool hint_ok = at >= 0x10000 && aspace_is_usable(at, len) && !((flags & MAP_32BIT) && at + len > 0x80000000ul);
        if (!hint_ok) at = pick_aligned(len, page, flags, for_file ? &id : NULL);
        if (!at) return lock_drop(&cache_lock), -ENOMEM;
    }
    if (aspace_has_too_many()) return lock_drop(&cache_lock), -ENOMEM;
    uint64_t more = len - (fixed ? mapped_in(at, at + len) : 0);
    if (!within_limits(more, is_data((uint32_t)prot, (uint32_t)flags))) return lock_drop(&cache_lock), -ENOMEM;
    int host_flags = (flags & ~(MAP_FIXED_NOREPLACE | MAP_32BIT)) | MAP_FIXED;
    bool numbered = shared && (anonymous || file);
    if (numbered && (flags & MAP_HUGETLB))
        return lock_drop(&cache_lock), -ENOMEM; /* no page of it can be handed over */
    if (fixed) code_watch_forget(at, at + len);
    long got = page != PAGE_SIZE && the_mode->own_memory_only
                   ? map_small_instead(at, len, aspace_host_prot(prot), host_flags)
                   : SYS(mmap, at, len, aspace_host_prot(prot), host_flags, fd, offset);
    if (got == -EINVAL && !addr && !fixed && !anonymous && !the_mode->own_memory_only) {
        got = aspace_map_by_driver(len, prot, host_flags, fd, offset);
        if (!sys_failed(got)) at = (gaddr)got;
    }
    if (!sys_failed(got)) {
        struct mapping m = {.start = at,
                            .end = at + len,
                            .prot = (uint32_t)prot,
                            .flags = (uint32_t)(flags & ~MAP_FIXED_NOREPLACE),
                            .offset = offset};
        if (!anonymous) m.file = id;
        m.was_writable = (prot & PROT_WRITE) || (file && (prot & PROT_EXEC) && is_young(&id));
        if (numbered) number_shared(&m);
        m.tracked = tracked;
        if (unlikely(again)) {
            m.flags |= MAP_ANONYMOUS;
            m.object = first.object;
            m.tracked = first.tracked;
        }
        add_shared(&m);
    }
    as->grows |= (flags & MAP_GROWSDOWN) != 0;
    track_changed(at, at + len);
    lock_drop(&cache_lock);
    return got;
}

long aspace_restore(const struct mapping *m, int fd, uint64_t base) {
    if (m->start >= m->end || (m->start | m->end | m->offset) & ~PAGE_MASK || m->end > LAYOUT_GUEST_END) return -EINVAL;
    lock_take(&cache_lock);
    long got = -ENOMEM;
    if (!aspace_is_barred(m->start, m->end - m->start)) {
        code_watch_forget(m->start, m->end);
        int kept = MAP_TYPE | MAP_NORESERVE | MAP_GROWSDOWN, flags = ((int)m->flags & kept) | MAP_FIXED;
        if (debug_is_on && fd < 0) flags = (flags & ~MAP_TYPE) | MAP_PRIVATE; /* copies of this process share nothing */
        got = SYS(mmap, m->start, m->end - m->start, aspace_host_prot((int)m->prot),
                  flags | (fd < 0 ? MAP_ANONYMOUS : 0), fd, fd < 0 ? 0 : base + m->offset);
    }
    if (!sys_failed(got)) {
        struct mapping copy = *m;
        if (is_shared(m->flags)) number_shared(&copy);
        as->grows |= (m->flags & MAP_GROWSDOWN) != 0;
        if (aspace_is_stack(m)) as->stack_top = MAX(as->stack_top, m->end);
        add_shared(&copy);
        track_changed(copy.start, copy.end);
    }
    lock_drop(&cache_lock);
    return sys_failed(got) ? got : 0;
}

long aspace_restore_again(const struct mapping *m) {
    size_t len = m->end - m->start;
    lock_take(&cache_lock);
    const struct mapping *first = find_page(m->object, m->offset);
    long got = -ENOMEM;
    struct mapping copy = *m;
    if (first && !aspace_is_barred(m->start, len)) {
        copy.tracked = first->tracked;
        gaddr from = first->start + (m->offset - first->offset);
        code_watch_forget(m->start, m->end);
        got = SYS(mremap, from, 0, len, MREMAP_MAYMOVE | MREMAP_FIXED, m->start);
    }
    if (!sys_failed(got)) {
        SYS(mprotect, m->start, len, aspace_host_prot((int)m->prot));
        add_shared(&copy);
        track_changed(copy.start, copy.end);
    }
    lock_drop(&cache_lock);
    return sys_failed(got) ? got : 0;
}

long aspace_munmap(gaddr addr, size_t len) {
    if ((addr & ~PAGE_MASK) || len == 0 || addr + len < addr || addr + len > LAYOUT_GUEST_END) return -EINVAL;
    len = PAGE_UP(len);
    lock_take(&cache_lock);
    aspace_note_growth();
    /* only what is the program's: the runtime may lie in between */
    code_watch_forget(addr, addr + len);
    track_changed(addr, addr + len);
    long ret = 0;
    for (size_t i = aspace_first_above(addr); i < as->n && as->list[i].start < addr + len; i++) {
        gaddr lo = MAX(as->list[i].start, addr), hi = MIN(as->list[i].end, addr + len);
        if (as->list[i].runtime) continue;
        ret = SYS(munmap, lo, hi - lo);
        if (ret) break;
    }
    if (!ret) {
        aspace_list_carve_guest(addr, addr + len);
        aspace_freed(addr, addr + len);
        aspace_stack_takes_room(addr, addr + len);
    }
    lock_drop(&cache_lock);
    return ret;
}

static void note_protection(gaddr start, gaddr end, int prot) {
    aspace_list_split(start);
    aspace_list_split(end);
    for (size_t i = aspace_first_above(start); i < as->n && as->list[i].start < end; i++)
        as->list[i].prot = (uint32_t)prot, as->list[i].was_writable |= prot & PROT_WRITE;
    aspace_list_merge(start, end);
    if (unlikely(shared_active)) shared_reprotect(start, end);
}

/* The kernel has changed what comes before a hole, or before what it cannot change. */
static void protect_some(gaddr start, gaddr end, int prot) {
    for (gaddr at = start; at < end;) {
        size_t i = aspace_first_above(at);
        if (i == as->n || as->list[i].start > at) return;
        gaddr next = MIN(as->list[i].end, end);
        if (SYS(mprotect, at, next - at, aspace_host_prot(prot)) != 0) return;
        note_protection(at, next, prot);
        at = next;
    }
}

long aspace_mprotect(gaddr addr, size_t len, int prot) {
    if (addr & ~PAGE_MASK) return -EINVAL;
    len = PAGE_UP(len);
    if (len == 0) return 0;
    if (addr + len < addr || aspace_is_runtime(addr, len)) return -ENOMEM;
    lock_take(&cache_lock);
    int keep = prot & (PROT_GROWSDOWN | PROT_GROWSUP);
    aspace_note_growth();
    gaddr start;
    if (keep == PROT_GROWSDOWN && aspace_is_in_stack(addr, &start)) {
        len += addr - start;
        addr = start;
        prot &= ~keep;
        keep = 0;
    }
    code_watch_forget(addr, addr + len);
    long ret = SYS(mprotect, addr, len, aspace_host_prot(prot & ~keep) | keep);
    if (ret == 0)
        note_protection(addr, addr + len, prot & ~keep);
    else
        protect_some(addr, addr + len, prot & ~keep);
    if (unlikely(track_closes)) track_changed(addr, addr + len); /* what was closed may be open now */
    lock_drop(&cache_lock);
    return ret;
}

long aspace_mremap(gaddr old, size_t old_len, size_t new_len, int flags, gaddr new_addr) {
    if ((old & ~PAGE_MASK) || new_len == 0) return -EINVAL;
    old_len = PAGE_UP(old_len);
    new_len = PAGE_UP(new_len);
    lock_take(&cache_lock);
    size_t i = aspace_first_above(old);
    if (i == as->n || as->list[i].start > old) return lock_drop(&cache_lock), -EFAULT;
    if (aspace_is_runtime(old, MAX(old_len, PAGE_SIZE))) return lock_drop(&cache_lock), -EFAULT;
    struct mapping m = as->list[i];
    m.offset += old - m.start;
    if (new_len > old_len && !within_limits(new_len - old_len, is_data(m.prot, m.flags)))
        return lock_drop(&cache_lock), -ENOMEM;
    code_watch_forget(old, old + MAX(old_len, PAGE_SIZE));
    bool in_pieces = m.tracked || m.shows_shared || (track_closes && !is_shared(m.flags));
    if (m.shows_shared && old_len)
        SYS(mprotect, old, old_len, PROT_READ | PROT_WRITE); /* the kernel counts it alike, then */
    if (in_pieces && old_len) SYS(mprotect, old, old_len, aspace_host_prot((int)m.prot)); /* one for the kernel */
    long got;
    if (flags & MREMAP_FIXED) {
        if ((new_addr & ~PAGE_MASK) || aspace_is_barred(new_addr, new_len)) return lock_drop(&cache_lock), -EINVAL;
        code_watch_forget(new_addr, new_addr + new_len);
        got = track_mremap(old, old_len, new_len, flags, new_addr);
    } else if (new_len <= old_len && old_len && !(flags & MREMAP_DONTUNMAP)) {
        got = track_mremap(old, old_len, new_len, flags & ~MREMAP_MAYMOVE, 0);
    } else {
        bool room = old_len && !(flags & MREMAP_DONTUNMAP) && old + old_len == m.end &&
                    !aspace_is_barred(old + old_len, new_len - old_len) &&
                    aspace_is_usable(old + old_len, new_len - old_len);
        got = room ? track_mremap(old, old_len, new_len, 0, 0) : -ENOMEM;
        if (sys_failed(got) && (flags & MREMAP_MAYMOVE)) {
            gaddr at = aspace_pick(new_len, (int)m.flags & MAP_32BIT, NULL);
            got = at ? track_mremap(old, old_len, new_len, flags | MREMAP_FIXED, at) : -ENOMEM;
        }
    }
    if (!sys_failed(got)) {
        if (old_len && !(flags & MREMAP_DONTUNMAP)) {
            aspace_list_carve(old, old + old_len);
            aspace_freed(old, old + old_len);
        }
        m.start = (gaddr)got;
        m.end = m.start + new_len;
        m.borrowed = m.shows_shared; /* it may have been in part */
        m.guarded = false;           /* so, too */
        aspace_list_add(&m);
    }
    track_changed(old, old + old_len);
    if (!sys_failed(got)) track_changed((gaddr)got, (gaddr)got + new_len);
    if (unlikely(shared_active)) {
        if (!sys_failed(got)) shared_reprotect((gaddr)got, (gaddr)got + new_len);
        shared_reprotect(old, old + old_len);
    }
    lock_drop(&cache_lock);
    return got;
}

long aspace_shmat(int id, gaddr addr, int flags) {
    struct {
        uint64_t w[16];
    } ds; /* struct shmid64_ds: shm_segsz is the first word behind ipc64_perm (48 bytes) */
    long ret = SYS(shmctl, id, 2 /* IPC_STAT */, &ds);
    if (ret < 0) return ret;
    size_t len = PAGE_UP(ds.w[6]);
    lock_take(&cache_lock);
    if (addr && (flags & 020000 /* SHM_RND */)) addr = PAGE_DOWN(addr);
    bool remap = flags & 040000; /* SHM_REMAP */
    if (!addr)
        addr = aspace_pick(len, 0, NULL);
    else if (aspace_is_barred(addr, len) || (!remap && !aspace_is_free(addr, addr + len)))
        return lock_drop(&cache_lock), -EINVAL;
    if (remap) code_watch_forget(addr, addr + len);
    long got = SYS(shmat, id, addr, flags & ~0100000 /* SHM_EXEC */);
    track_changed(addr, addr + len);
    if (!sys_failed(got)) {
        struct mapping m = {.start = addr, .end = addr + len, .flags = MAP_SHARED};
        m.prot = PROT_READ | (flags & 010000 ? 0 : PROT_WRITE) | (flags & 0100000 ? PROT_EXEC : 0);
        m.file.ino = (uint64_t)id + 1;
        m.file.mtime_ns = ds.w[7]; /* when it was last attached; 0: never, so it is all zero */
        fmt_into(m.name, sizeof m.name, "/SYSV");
        if (the_mode->tracks) number_shared(&m);
        m.tracked = the_mode->tracks && the_mode->tracks(-1, m.object);
        add_shared(&m);
    }
    lock_drop(&cache_lock);
    return got;
}

/* A piece of a segment that was attached at addr: parts of it may be gone, or protected differently. */
static bool is_attached(const struct mapping *m, gaddr addr) {
    return m->name[0] == '/' && m->start - addr == m->offset;
}

long aspace_shmdt(gaddr addr) {
    if (addr & ~PAGE_MASK) return -EINVAL;
    lock_take(&cache_lock);
    size_t i = aspace_first_above(addr);
    while (i < as->n && !is_attached(&as->list[i], addr)) i++;
    uint64_t segment = i < as->n ? as->list[i].file.ino : 0;
    while (i < as->n) {
        struct mapping m = as->list[i];
        if (m.file.ino != segment || !is_attached(&m, addr)) {
            i++;
            continue;
        }
        code_watch_forget(m.start, m.end);
        SYS(munmap, m.start, m.end - m.start);
        aspace_list_carve(m.start, m.end);
        aspace_freed(m.start, m.end);
        track_changed(m.start, m.end);
    }
    lock_drop(&cache_lock);
    return segment ? 0 : -EINVAL;
}

/* ---- brk ---- */

/* Programs that keep data behind their end have asked for addresses that are not random, often by executing themselves
 * again. Below the libraries there is room for that; all others get more of it far away. */
static bool brk_stays(gaddr start) {
    long personality = SYS(personality, 0xffffffff);
    return start >= LAYOUT_BRK ||
           (start < LAYOUT_LIB_BASE && !sys_failed(personality) && (personality & ADDR_NO_RANDOMIZE));
}

void aspace_set_brk(gaddr start) {
    start = PAGE_UP(start);
    as->brk_start = as->brk_end = brk_stays(start) ? start : LAYOUT_BRK + (aspace_mix(as->seed, 7) % 4096) * PAGE_SIZE;
}

void aspace_get_brk(gaddr *start, gaddr *end) {
    *start = as->brk_start;
    *end = as->brk_end;
}

void aspace_put_brk(gaddr start, gaddr end) {
    as->brk_start = start;
    as->brk_end = end;
}

gaddr aspace_brk(gaddr wanted) {
    lock_take(&cache_lock);
    gaddr now = PAGE_UP(as->brk_end), then = PAGE_UP(wanted);
    if (wanted < as->brk_start) {
        lock_drop(&cache_lock);
        return as->brk_end;
    }
    if (then > now) {
        if (wanted - as->brk_start > thread_self()->process->limits.data.soft || !within_limits(then - now, true))
            goto out;
        if (aspace_is_barred(now, then - now) || !aspace_is_usable(now, then - now) ||
            aspace_overlap(now, then, LAYOUT_LIB_BASE, LAYOUT_LIB_END))
            goto out;
        long got = SYS(mmap, now, then - now, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        if (sys_failed(got)) goto out;
        struct mapping m = {.start = now,
                            .end = then,
                            .prot = (uint32_t)thread_prot(thread_self(), PROT_READ | PROT_WRITE),
                            .flags = MAP_PRIVATE | MAP_ANONYMOUS,
                            .name = "[heap]"};
        aspace_list_add(&m);
        track_changed(now, then);
    } else if (then < now) {
        code_watch_forget(then, now);
        track_changed(then, now);
        SYS(munmap, then, now - then);
        aspace_list_carve(then, now);
    }
    as->brk_end = wanted;
out:
    lock_drop(&cache_lock);
    return as->brk_end;
}

/* ---- questions ---- */

const struct mapping *aspace_peek(gaddr addr) {
    size_t i = aspace_first_above(addr);
    return i < as->n && as->list[i].start <= addr ? &as->list[i] : NULL;
}

bool aspace_find(gaddr addr, struct mapping *out) {
    lock_take(&cache_lock);
    const struct mapping *m = aspace_peek(addr);
    if (m) *out = *m;
    lock_drop(&cache_lock);
    return m != NULL;
}

bool aspace_nth(size_t i, struct mapping *out) {
    lock_take(&cache_lock);
    bool found = i < as->n;
    if (found) *out = as->list[i];
    lock_drop(&cache_lock);
    return found;
}

/* Whole mappings: a kept region is for all of a file's code. */
void aspace_note_changed(gaddr start, gaddr end) {
    for (size_t i = aspace_first_above(start); i < as->n && as->list[i].start < end; i++)
        as->list[i].was_writable = true;
}

void aspace_name(gaddr addr, const char *name) {
    lock_take(&cache_lock);
    size_t i = aspace_first_above(addr);
    if (i < as->n && as->list[i].start <= addr) fmt_into(as->list[i].name, sizeof as->list[i].name, "%s", name);
    if (i < as->n && aspace_is_stack(&as->list[i])) as->stack_top = as->list[i].end;
    lock_drop(&cache_lock);
}

void aspace_adopt(gaddr start, size_t len, int prot, const char *name) {
    struct mapping m = {
        .start = start, .end = start + len, .prot = (uint32_t)prot, .flags = MAP_PRIVATE | MAP_ANONYMOUS};
    fmt_into(m.name, sizeof m.name, "%s", name);
    lock_take(&cache_lock);
    aspace_list_add(&m);
    lock_drop(&cache_lock);
}

bool aspace_kept_at(gaddr pc, struct kept_file *out) {
    const struct mapping *m = aspace_peek(pc);
    if (!m || !m->file.ino || m->was_writable || (m->prot & PROT_WRITE) || (m->flags & MAP_TYPE) != MAP_PRIVATE)
        return false;
    if (m->start < m->offset || m->start >= LAYOUT_FILES_END || m->name[0] || code_files_is_loose(m)) return false;
    *out = (struct kept_file){.dev = m->file.dev,
                              .ino = m->file.ino,
                              .size = m->file.size,
                              .mtime_ns = m->file.mtime_ns,
                              .ctime_ns = m->file.ctime_ns,
                              .base = m->start - m->offset,
                              .text_start = m->start,
                              .text_end = m->end};
    return out->base >= LAYOUT_LIB_BASE || m->start < LAYOUT_LIB_BASE;
}

gaddr aspace_huge_code(void) {
    for (size_t i = 0; i < as->n; i++) {
        const struct mapping *m = &as->list[i];
        if ((m->prot & PROT_EXEC) && m->file.ino && m->start >= LAYOUT_LIB_END && m->end <= LAYOUT_FILES_END)
            return m->start;
    }
    return 0;
}

bool aspace_claim(gaddr at, size_t len) {
    if (!aspace_is_usable(at, len) || aspace_overlap(at, at + len, aspace_mmap_top(), as->stack_top)) return false;
    struct mapping m = {.start = at, .end = at + len, .runtime = true, .name = "[reprise]"};
    aspace_list_add(&m);
    return true;
}

void aspace_unclaim(gaddr at, size_t len) { aspace_list_carve(at, at + len); }

/* Where memory is scarce for us too, the kernel's own limit of mappings is far enough. */
void aspace_start(uint64_t seed) {
    uint64_t as_limit[2] = {0, 0}, data_limit[2] = {0, 0};
    SYS(prlimit64, 0, 9 /* RLIMIT_AS */, 0, as_limit);
    SYS(prlimit64, 0, 2 /* RLIMIT_DATA */, 0, data_limit);
    as->most = MIN(as_limit[0], data_limit[0]) < FEW_MAPPINGS_BELOW ? FEW_MAPPINGS : MAX_MAPPINGS;
    as->room = arena_reserve(as->most * sizeof *as->list);
    as->list = as->room + as->most / 2;
    as->seed = seed;
}
