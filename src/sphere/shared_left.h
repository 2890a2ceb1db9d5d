/* What checkpoints hold of memory shared with other processes (recording).
 *
 * A page that this address space owns is as its mappings show it. One that is somebody else's now is, for this process, what it left
 * in it: so a copy is made where a page is released, and kept until a checkpoint has it. Pages that it never had since its stream
 * began are what they were then (inherited) or what their file was when it was mapped first: a restore finds that elsewhere.
 *
 * In the store, pages of shared objects have addresses that no memory has: SHARED_PAGES_AT (log/snapshot.h), by the object's slot
 * here, which never changes within a stream.
 * Whoever calls has the turn. */
#ifndef REPRISE_SHARED_LEFT_H
#define REPRISE_SHARED_LEFT_H

#include "log/snapshot.h"
#include "sphere/shared.h"

/* A file whose pages change hands is mapped. in_memory: it has no contents but in memory. writable: the program can write to the
 * mapping. */
void left_object(uint64_t object, const struct ev_mapped *first, bool in_memory, bool writable);
/* Mappings of [start, end) are about to be made writable. */
void left_made_writable(gaddr start, gaddr end);
/* The page at addr, which is ours, holds something else than its file. */
void left_seen(gaddr addr);

/* The page, owned and still open, is about to be somebody else's. */
void left_released(struct shared_at at);
/* It is this address space's again, and mapped at addr (0: it is not). True: *contents and the blocks in `bytes`, a page of room, say
 * what it holds; they are to be logged with it. */
bool left_acquired(struct shared_at at, gaddr addr, struct ev_contents *contents, uint8_t *bytes);
/* A page that is nobody's, and can be seen at `page`, is about to be touched by one instruction. How many bytes an event needs to tell
 * what is in it; 0: what the process has seen of it so far is known, or nothing is kept. */
size_t left_look(struct shared_at at, const uint8_t *page);
/* It was: n bytes at `offset` are behind it as `value` has them. contents: room for as many bytes as asked for. False: nothing is kept,
 * and what the process left there is as before. */
bool left_saw(struct shared_at at, struct ev_contents *contents, uint64_t offset, const void *value, size_t n);
/* Mappings of [start, end) are about to go. */
void left_unmapping(gaddr start, gaddr end);
/* A call is about to change the file, or has: pages that are not mapped are read through fd. */
void left_file(uint64_t object, int fd);
/* A call has written to a shared file. */
void left_written(uint64_t object, uint64_t offset, const void *bytes, uint64_t len);
/* Or cut it off. */
void left_cut(uint64_t object, uint64_t size);
/* Pages of shared memory were given back (MADV_REMOVE). */
void left_removed(gaddr start, gaddr end);
/* In the child of a fork: all that there is was inherited. */
void left_after_fork(void);

/* Whether all of it can be saved now: `most` pages at most; then *pages says how many. */
bool left_can_be_saved(uint64_t most, uint64_t *pages);
/* Pages that have changed since the last checkpoint, while one is saved (ckpt/rt/save.h). */
void left_save(void);
/* That one is in the store. */
void left_saved(void);

/* The parts of a snapshot: how many, and the parts. */
void left_count(uint32_t *objects, uint32_t *owned);
void left_write_objects(struct snapshot_object *to);
void left_write_owned(struct snapshot_owned *to);

#endif
