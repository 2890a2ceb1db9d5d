#include "sphere/forced_write.h"

#include <linux/mman.h>

#include "engine/cache.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/code_watch.h"
#include "sphere/gate.h"
#include "sphere/shared.h"

static bool may_be_forced(gaddr addr, size_t len) {
    struct mapping m;
    for (gaddr at = addr; at < addr + len; at = m.end)
        if (!aspace_find(at, &m) || m.runtime || (!(m.prot & PROT_WRITE) && (m.flags & MAP_TYPE) != MAP_PRIVATE))
            return false;
    return true;
}

/* The pages of [addr, addr + len) become writable for a moment; with all of their mapping, if it cannot be split: the vDSO. */
static bool force(gaddr addr, const void *from, size_t len) {
    gaddr start = PAGE_DOWN(addr), end = PAGE_UP(addr + len);
    struct mapping m;
    if (SYS(mprotect, start, end - start, PROT_READ | PROT_WRITE) == -EINVAL && aspace_find(addr, &m)) {
        start = m.start;
        end = m.end;
        SYS(mprotect, start, end - start, PROT_READ | PROT_WRITE);
    }
    bool done = guest_write(addr, from, len);
    for (gaddr at = start; at < end && aspace_find(at, &m); at = m.end)
        SYS(mprotect, at, MIN(m.end, end) - at, aspace_host_prot((int)m.prot));
    lock_take(&cache_lock);
    aspace_note_changed(addr, addr + len);
    code_watch_forget(addr, addr + len);
    if (unlikely(shared_active)) shared_reprotect(start, end);
    lock_drop(&cache_lock);
    return done;
}

bool forced_fill(gaddr addr, const void *from, size_t len) {
    if (addr + len < addr || aspace_is_runtime(addr, len)) return false;
    code_watch_before_kernel_write(addr, len);
    return guest_write(addr, from, len) || force(addr, from, len);
}

bool forced_write(gaddr addr, const void *from, size_t len, bool forced) {
    if (addr + len < addr || aspace_is_runtime(addr, len)) return false;
    code_watch_before_kernel_write(addr, len);
    if (guest_write(addr, from, len)) return true;
    return forced && may_be_forced(addr, len) && force(addr, from, len);
}
