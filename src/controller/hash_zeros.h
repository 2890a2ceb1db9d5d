/* Hashing zeros that nobody has to read: holes of files, which may be much larger than all that is in them. */
#ifndef REPRISE_HASH_ZEROS_H
#define REPRISE_HASH_ZEROS_H

#include <stdint.h>
#include <xxhash.h>

/* As if n zeros were given to XXH3_128bits_update(), ten times as fast when there are many. */
void hash_zeros(XXH3_state_t *hash, uint64_t n);

#endif
