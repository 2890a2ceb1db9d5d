/* Calls that change the address space. */
#include <asm/stat.h>
#include <linux/mman.h>
#include <linux/shm.h>

#include "ckpt/rt/track.h"
#include "engine/cache.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/borrowed.h"
#include "sphere/channel.h"
#include "sphere/code_files.h"
#include "sphere/code_watch.h"
#include "sphere/fork_advice.h"
#include "sphere/mode.h"
#include "sphere/packet_ring.h"
#include "sphere/shared.h"
#include "sphere/shared_left.h"
#include "sphere/sys/proc_maps.h"
#include "sphere/sys/special.h"

#define FILE_TYPE 0170000
#define SOCKET 0140000

/* Rings of performance events and of packets, which the kernel writes whenever it likes. */
static bool is_kernels(int fd) {
    struct stat st;
    return SYS(fstat, fd, &st) == 0 && ((st.st_mode & FILE_TYPE) == 0 || (st.st_mode & FILE_TYPE) == SOCKET);
}

static void unmapping(gaddr start, uint64_t len) {
    if (unlikely(shared_active) && start + len > start) left_unmapping(PAGE_DOWN(start), PAGE_UP(start + len));
}

long sys_mmap(struct tblock *t, uint64_t a[6]) {
    if (a[5] & ~PAGE_MASK) return -EINVAL;
    if (!(a[3] & MAP_ANONYMOUS) && fd_is_own(a[4])) return -EBADF;
    int prot = thread_prot(t->thread, a[2]);
    if (mdwe_refuses(prot, true)) return -EACCES;
    if (!(a[3] & MAP_ANONYMOUS) && the_mode->map_kernels && is_kernels((int)a[4]))
        return the_mode->map_kernels(a, prot);
    code_files_mapped((int)a[4], prot, (int)a[3]);
    if (a[3] & MAP_FIXED) unmapping(a[0], a[1]);
    long ret = aspace_mmap(a[0], a[1], prot, (int)a[3], (int)a[4], a[5]);
    if (unlikely(packet_ring_any) && !sys_failed(ret)) packet_ring_unmapped((gaddr)ret, a[1]);
    return ret;
}

long sys_munmap(struct tblock *t, uint64_t a[6]) {
    unmapping(a[0], a[1]);
    long ret = aspace_munmap(a[0], a[1]);
    if (unlikely(packet_ring_any) && ret == 0) packet_ring_unmapped(a[0], a[1]);
    return ret;
}

static long protect(gaddr start, uint64_t len, int prot) {
    if ((prot & PROT_WRITE) && start + len > start) left_made_writable(PAGE_DOWN(start), PAGE_UP(start + len));
    return aspace_mprotect(start, len, prot);
}

long sys_mprotect(struct tblock *t, uint64_t a[6]) {
    struct mapping m;
    int prot = thread_prot(t->thread, a[2]);
    if (unlikely(mdwe_refuses(prot, false)) && mdwe_refuses(prot, aspace_find(a[0], &m) && (m.prot & PROT_EXEC)))
        return -EACCES;
    return protect(a[0], a[1], prot);
}

long sys_pkey_mprotect(struct tblock *t, uint64_t a[6]) {
    if ((int)a[3] == -1) return protect(a[0], a[1], thread_prot(t->thread, a[2]));
    return -EINVAL; /* no keys are given out */
}

long sys_mremap(struct tblock *t, uint64_t a[6]) {
    if (a[2] < a[1]) unmapping(a[0] + a[2], a[1] - a[2]);
    if (a[3] & MREMAP_FIXED) unmapping(a[4], a[2]);
    long ret = aspace_mremap(a[0], a[1], a[2], (int)a[3], a[4]);
    if (unlikely(packet_ring_any) && !sys_failed(ret)) packet_ring_moved(a[0], (gaddr)ret);
    return ret;
}

long sys_brk(struct tblock *t, uint64_t a[6]) { return (long)aspace_brk(a[0]); }

long sys_shmat(struct tblock *t, uint64_t a[6]) { return aspace_shmat((int)a[0], a[1], (int)a[2]); }

/* Of all processes of the sphere that own pages of shared memory, and so have closed others. */
static uint64_t segment_cuts(int id) {
    uint64_t cuts = 0;
    for (uint32_t i = 0; shared_tables() && i < CHANNEL_RINGS; i++) {
        const struct shared_sharer *s = &shared_tables()->sharers[i];
        if (s->pid && shared_sharer_lives(s)) cuts += maps_segment_cuts((int)s->pid, id);
    }
    return cuts;
}

/* The kernel counts the pieces of a segment's mappings as if each were attached by itself. */
static long stat_segment(const uint64_t a[6]) {
    enum { TRIES = 5 };
    uint64_t before = UINT64_MAX, now, at = a[2] + offsetof(struct shmid64_ds, shm_nattch);
    for (int i = 0; i < TRIES; i++) { /* pages come and go meanwhile */
        long ret = gate_syscall(__NR_shmctl, a);
        if (ret < 0 || !shared_active || !guest_read(&now, at, 8)) return ret;
        uint64_t cuts = segment_cuts((int)a[1] == IPC_STAT ? (int)a[0] : (int)ret);
        if (now == before || i == TRIES - 1 || !cuts) {
            now -= MIN(now, cuts);
            guest_write(at, &now, 8);
            return ret;
        }
        before = now;
    }
    return 0;
}

long sys_shmctl(struct tblock *t, uint64_t a[6]) {
    int command = (int)a[1];
    if (command == IPC_STAT || command == SHM_STAT || command == SHM_STAT_ANY) return stat_segment(a);
    return gate_syscall(__NR_shmctl, a);
}

long sys_shmdt(struct tblock *t, uint64_t a[6]) {
    struct mapping m;
    for (gaddr at = a[0]; aspace_find(at, &m) && m.name[0] == '/'; at = m.end) unmapping(m.start, m.end - m.start);
    return aspace_shmdt(a[0]);
}

/* Whether there can be code in [start, end). Caller holds cache_lock. */
static bool may_hold_code(gaddr start, gaddr end) {
    for (gaddr at = start; at < end;) {
        const struct mapping *m = aspace_peek(at);
        if (!m || (m->prot & PROT_EXEC)) return true; /* a hole: something may lie behind it */
        at = m->end;
    }
    return false;
}

/* Issues a call that changes what [start, start + len) contains, and drops translations of it. */
static long changing(gaddr start, size_t len, long nr, const uint64_t a[6]) {
    gaddr end = start + PAGE_UP(len);
    if (end < start) end = UINT64_MAX;
    lock_take(&cache_lock);
    bool code = may_hold_code(start, end);
    if (!code) lock_drop(&cache_lock);
    long ret = sys6(nr, (long)a[0], (long)a[1], (long)a[2], (long)a[3], (long)a[4], (long)a[5]);
    if (code) code_watch_forget(start, end);
    if (code) lock_drop(&cache_lock);
    if (unlikely(track_is_on)) {
        lock_take(&cache_lock);
        track_changed(start, end);
        lock_drop(&cache_lock);
    }
    return ret;
}

/* Holes in the range are an error, but the rest is done. */
static void note_guards(const uint64_t a[6], long ret) {
    gaddr start = PAGE_DOWN(a[0]), end = a[0] + PAGE_UP(a[1]);
    if (ret != 0 && ret != -ENOMEM) return;
    aspace_guard(start, end, a[2] == ADVICE_GUARD_INSTALL);
    borrowed_guarded(start, end);
}

long sys_madvise(struct tblock *t, uint64_t a[6]) {
    switch (a[2]) {
    case MADV_DONTNEED:
    case MADV_FREE:
    case MADV_REMOVE:
    case MADV_HWPOISON:
    case ADVICE_DONTNEED_LOCKED:
    case ADVICE_GUARD_INSTALL:
    case ADVICE_GUARD_REMOVE:
        if (a[1] && aspace_is_runtime(a[0], a[1])) return -ENOMEM;
        if (a[2] == MADV_REMOVE) left_removed(a[0], a[0] + a[1]);
        long ret = changing(a[0], a[1], __NR_madvise, a);
        if (unlikely(a[2] >= ADVICE_GUARD_INSTALL)) note_guards(a, ret);
        borrowed_dropped(PAGE_DOWN(a[0]), a[0] + PAGE_UP(a[1]));
        return ret;
    case MADV_DONTFORK:
    case MADV_WIPEONFORK: fork_advice_begin(); /* fall through */
    default: return gate_syscall(__NR_madvise, a);
    }
}

/* The ranges are of the process that a[0] names: this one, maybe. */
long sys_process_madvise(struct tblock *t, uint64_t a[6]) {
    return changing(0, UINT64_MAX / 2, __NR_process_madvise, a);
}

long sys_remap_file_pages(struct tblock *t, uint64_t a[6]) {
    if (aspace_is_runtime(a[0], a[1])) return -EINVAL;
    return changing(a[0], a[1], __NR_remap_file_pages, a);
}

/* The kernel counts what is ours, too, against the limit. */
long sys_mlockall(struct tblock *t, uint64_t a[6]) {
    uint64_t limit[2];
    long ret = gate_syscall(__NR_mlockall, a);
    if (ret != -ENOMEM || !(a[0] & MCL_CURRENT)) return ret;
    if (SYS(prlimit64, 0, 8 /* RLIMIT_MEMLOCK */, 0, limit) != 0) return ret;
    if (!aspace_lock_memory(limit[0], a[0] & MCL_ONFAULT)) return ret;
    if (a[0] & MCL_FUTURE) SYS(mlockall, a[0] & ~(uint64_t)MCL_CURRENT);
    return 0;
}
