/* A futex mutex. Not recursive; never taken in a signal handler. */
#ifndef REPRISE_LOCK_H
#define REPRISE_LOCK_H

#include "inproc/sys.h"

struct lock {
    uint32_t word; /* 0 free, 1 held, 2 held and somebody waits */
};

#define LOCK_FUTEX_WAIT_PRIVATE 128
#define LOCK_FUTEX_WAKE_PRIVATE 129

/* limit: seconds and nanoseconds that one wait may take, NULL: any. False: it was not to be had. */
static inline bool lock_take_within(struct lock *l, const int64_t limit[2]) {
    uint32_t seen = 0;
    if (__atomic_compare_exchange_n(&l->word, &seen, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return true;
    for (int i = 0; i < 100; i++) {
        seen = 0;
        if (__atomic_load_n(&l->word, __ATOMIC_RELAXED) == 0 &&
            __atomic_compare_exchange_n(&l->word, &seen, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return true;
        __builtin_ia32_pause();
    }
    while (__atomic_exchange_n(&l->word, 2, __ATOMIC_ACQUIRE) != 0)
        if (SYS(futex, &l->word, LOCK_FUTEX_WAIT_PRIVATE, 2, limit) == -ETIMEDOUT) return false;
    return true;
}

static inline void lock_take(struct lock *l) { lock_take_within(l, NULL); }

static inline void lock_drop(struct lock *l) {
    if (__atomic_exchange_n(&l->word, 0, __ATOMIC_RELEASE) == 2) SYS(futex, &l->word, LOCK_FUTEX_WAKE_PRIVATE, 1);
}

#endif
