/* Kept translations: the code cache of a file's code, stored for later processes.
 *
 * Every library and program has its place in the address space by its identity (inproc/layout.h), and its translations stay
 * where they were made (kept_place.h). So a region can be written to disk as it is and mapped again: links inside it stay,
 * links that leave it are undone in the written copy. An image is used only for the same file (device, inode, size, times),
 * address, runtime build and policy, only if it belongs to the user, and only if its checksum is right (kept_mark.h). Writers
 * make a new file and rename it: a reader sees the old image or the new one. Whatever goes wrong, the program just runs without.
 * Limit: images are mapped, not read (a copy would make each fork and exec pay for every page), so an image that somebody
 * truncates or overwrites in place takes the programs with it that are running from it. Reprise never does that. */
#ifndef REPRISE_KEPT_H
#define REPRISE_KEPT_H

#include "engine/cache.h"

/* Makes the kept region for code at pc, from disk if there is an image. Caller holds cache_lock. */
void kept_prepare(gaddr pc);

/* Writes what has grown. Takes cache_lock. */
void kept_save(void);

#endif
