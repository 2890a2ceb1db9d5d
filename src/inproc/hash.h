/* 64-bit checksum of bytes: XXH64, from the xxHash headers, without libc. */
#ifndef REPRISE_HASH_H
#define REPRISE_HASH_H

#include "inproc/types.h"

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed);

#endif
