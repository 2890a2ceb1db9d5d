// cflags: -mcx16
/* Locked instructions of all widths from several threads: nothing is lost; a message-passing order holds. */
#include "guest.h"

enum { N = 4, ROUNDS = 200000 };
static _Alignas(64) struct {
    uint8_t b;
    uint16_t w;
    uint32_t d;
    uint64_t q;
    unsigned __int128 x;
    uint64_t xchg;
} s;
static uint64_t data, flag, bad;

static void *work(void *arg) {
    for (int i = 0; i < ROUNDS; i++) {
        __atomic_add_fetch(&s.b, 1, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&s.w, 3, __ATOMIC_SEQ_CST);
        __atomic_fetch_add(&s.d, 5, __ATOMIC_SEQ_CST);
        uint64_t q = s.q;
        while (!__atomic_compare_exchange_n(&s.q, &q, q + 7, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {}
        if (i % 8 == 0) {
            unsigned __int128 old = s.x;
            for (;;) {
                unsigned __int128 want = old + (((unsigned __int128)1 << 64) | 1), seen;
                seen = __sync_val_compare_and_swap(&s.x, old, want);
                if (seen == old) break;
                old = seen;
            }
        }
    }
    return arg;
}
static void *writer(void *arg) {
    for (uint64_t i = 1; i <= 300000; i++) data = i * 3, __atomic_store_n(&flag, i, __ATOMIC_RELEASE);
    return arg;
}
static void *reader(void *arg) {
    for (uint64_t f = 0; f < 300000;) {
        f = __atomic_load_n(&flag, __ATOMIC_ACQUIRE);
        if (*(volatile uint64_t *)&data < f * 3) bad++;
    }
    return arg;
}

int main(void) {
    pthread_t t[N];
    for (long i = 0; i < N; i++) pthread_create(&t[i], NULL, work, NULL);
    for (int i = 0; i < N; i++) pthread_join(t[i], NULL);
    printf("%u %u %u %lu %lu:%lu\n", s.b, s.w, s.d, s.q, (uint64_t)(s.x >> 64), (uint64_t)s.x);
    pthread_create(&t[0], NULL, writer, NULL), pthread_create(&t[1], NULL, reader, NULL);
    pthread_join(t[0], NULL), pthread_join(t[1], NULL);
    printf("out of order: %lu\n", bad);
    return finish();
}
