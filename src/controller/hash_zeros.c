/* XXH3 takes its input in blocks: 16 stripes of 64 bytes, each of which is mixed with the secret and added to eight sums, and
 * then the sums are scrambled. What stripes of zeros add is always the same, so a block of them is one addition and one
 * scrambling. This looks into the state that streams have in xxhash.h; tests/unit/hash_zeros_test.c compares. */
#define XXH_STATIC_LINKING_ONLY
#include "controller/hash_zeros.h"

#include <string.h>

#define LANES 8
#define STRIPE 64
#define LEAD 4096 /* zeros given as they are: behind them nothing else is waiting in the state */
#define PRIME 0x9e3779b1u

static const uint8_t zeros[LEAD];

static uint64_t word(const uint8_t *p) {
    uint64_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

/* What stripes [from, to) of a block of zeros add to a sum. */
static uint64_t added(const uint8_t *secret, size_t from, size_t to, size_t lane) {
    uint64_t sum = 0;
    for (size_t i = from; i < to; i++) {
        uint64_t key = word(secret + (i + lane) * 8);
        sum += (key & UINT32_MAX) * (key >> 32);
    }
    return sum;
}

/* As many bytes as n blocks have; where in a block that begins does not matter. */
static void skip_blocks(XXH3_state_t *s, uint64_t n) {
    const uint8_t *secret = s->extSecret ? s->extSecret : s->customSecret;
    uint64_t first[LANES], last[LANES], key[LANES], sum[LANES];
    for (size_t i = 0; i < LANES; i++) {
        first[i] = added(secret, s->nbStripesSoFar, s->nbStripesPerBlock, i);
        last[i] = added(secret, 0, s->nbStripesSoFar, i);
        key[i] = word(secret + s->secretLimit + i * 8);
        sum[i] = s->acc[i];
    }
    s->totalLen += n * s->nbStripesPerBlock * STRIPE;
    for (; n; n--)
#pragma GCC unroll 8
        for (size_t i = 0; i < LANES; i++) {
            uint64_t v = sum[i] + first[i];
            sum[i] = (v ^ v >> 47 ^ key[i]) * PRIME + last[i];
        }
    memcpy(s->acc, sum, sizeof sum);
}

void hash_zeros(XXH3_state_t *hash, uint64_t n) {
    if (n > 2 * LEAD) {
        uint64_t block = hash->nbStripesPerBlock * STRIPE;
        XXH3_128bits_update(hash, zeros, LEAD);
        skip_blocks(hash, (n - LEAD) / block);
        n = (n - LEAD) % block;
    }
    for (; n > LEAD; n -= LEAD) XXH3_128bits_update(hash, zeros, LEAD);
    XXH3_128bits_update(hash, zeros, n);
}
