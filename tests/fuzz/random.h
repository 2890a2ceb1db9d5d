/* Random numbers for smoke tests that do without a fuzzer (xorshift). */
#ifndef FUZZ_RANDOM_H
#define FUZZ_RANDOM_H

#include <stdint.h>

static uint64_t random_state; /* not 0 */

static uint64_t next(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

#endif
