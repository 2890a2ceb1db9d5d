/* A futex mutex. Not recursive; never taken in a signal handler. */
#ifndef REPRISE_LOCK_H
#define REPRISE_LOCK_H

#include "inproc/sys.h"

struct lock {
    uint32_t word; /* 0 free, 1 held, 2 held and somebody waits */
};

#define LOCK_FUTEX_WAIT_PRIVATE 128
#define LOCK_FUTEX_WAKE_PRIVATE 129

static inline void lock_take(struct lock *l) {
    uint32_t seen = 0;
    if (__atomic_compare_exchange_n(&l->word, &seen, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
    for (int i = 0; i < 100; i++) {
        seen = 0;
        if (__atomic_load_n(&l->word, __ATOMIC_RELAXED) == 0 &&
            __atomic_compare_exchange_n(&l->word, &seen, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return;
        __builtin_ia32_pause();
    }
    while (__atomic_exchange_n(&l->word, 2, __ATOMIC_ACQUIRE) != 0) SYS(futex, &l->word, LOCK_FUTEX_WAIT_PRIVATE, 2, 0);
}

static inline void lock_drop(struct lock *l) {
    if (__atomic_exchange_n(&l->word, 0, __ATOMIC_RELEASE) == 2) SYS(futex, &l->word, LOCK_FUTEX_WAKE_PRIVATE, 1);
}

#endif
