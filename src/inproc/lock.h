/* A futex mutex. Not recursive; in a signal handler only where what it has interrupted, the cache, holds none.
 *
 * Processes that share memory share its locks, and one of them can be killed alone, at any time. So a lock names the process that has it,
 * and whoever has waited long asks whether that still lives. */
#ifndef REPRISE_LOCK_H
#define REPRISE_LOCK_H

#include "inproc/sys.h"

struct lock {
    uint32_t word; /* 0: free; else who has it, and LOCK_AWAITED if somebody waits */
};

#define LOCK_AWAITED 0x80000000u
#define LOCK_SPINS 400 /* some 5 us, what translating a block takes */
#define LOCK_PATIENCE_NS 100000000
#define LOCK_FUTEX_WAIT_PRIVATE 128
#define LOCK_FUTEX_WAKE_PRIVATE 129

/* Who we are, and whether another one is no more; NULL: there is only one process. */
__attribute__((weak)) uint32_t (*lock_own_id)(void);
__attribute__((weak)) bool (*lock_is_dead)(uint32_t id);

static inline void lock_wait(struct lock *l, uint32_t id) {
    const int64_t patience[2] = {0, LOCK_PATIENCE_NS};
    for (;;) {
        uint32_t seen = __atomic_load_n(&l->word, __ATOMIC_RELAXED), holder = seen & ~LOCK_AWAITED;
        if (holder && !(seen & LOCK_AWAITED) &&
            !__atomic_compare_exchange_n(&l->word, &seen, seen | LOCK_AWAITED, false, __ATOMIC_RELAXED,
                                         __ATOMIC_RELAXED))
            continue;
        seen = holder | LOCK_AWAITED;
        bool free = !holder;
        if (!free && SYS(futex, &l->word, LOCK_FUTEX_WAIT_PRIVATE, seen, patience) == -ETIMEDOUT)
            free = holder != id && lock_is_dead && lock_is_dead(holder);
        if (!holder) seen = 0;
        if (free &&
            __atomic_compare_exchange_n(&l->word, &seen, id | LOCK_AWAITED, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return;
    }
}

/* False: somebody has it. */
static inline bool lock_try(struct lock *l) {
    uint32_t seen = 0, id = lock_own_id ? lock_own_id() : 1;
    return __atomic_compare_exchange_n(&l->word, &seen, id, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void lock_take(struct lock *l) {
    if (lock_try(l)) return;
    uint32_t id = lock_own_id ? lock_own_id() : 1;
    for (int i = 0; i < LOCK_SPINS; i++) {
        uint32_t seen = 0;
        if (__atomic_load_n(&l->word, __ATOMIC_RELAXED) == 0 &&
            __atomic_compare_exchange_n(&l->word, &seen, id, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return;
        __builtin_ia32_pause();
    }
    lock_wait(l, id);
}

static inline void lock_drop(struct lock *l) {
    if (__atomic_exchange_n(&l->word, 0, __ATOMIC_RELEASE) & LOCK_AWAITED)
        SYS(futex, &l->word, LOCK_FUTEX_WAKE_PRIVATE, 1);
}

#endif
