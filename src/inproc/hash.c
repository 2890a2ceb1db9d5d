#include "inproc/hash.h"

#include "inproc/str.h"

#define XXH_INLINE_ALL
#define XXH_NO_XXH3
#define XXH_VECTOR 0 /* scalar: the runtime uses no vector registers */
#define XXH_NO_STDLIB
#pragma GCC diagnostic ignored "-Wunused-function"
#include <xxhash.h>

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed) { return XXH64(p, n, seed); }
