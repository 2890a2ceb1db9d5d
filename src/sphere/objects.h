/* Objects: files that the program maps. The controller keeps their contents; events name them by hash. */
#ifndef REPRISE_OBJECTS_H
#define REPRISE_OBJECTS_H

#include "log/events.h"
#include "sphere/aspace.h"
#include "sphere/thread.h"

/* Recording: the controller gets the file to keep, unless it has it. tracked: pages of it will change hands. */
void objects_keep(int fd, const struct file_id *id, bool tracked);
/* The name of a file that was kept; all zero: it could not be. */
struct object_name objects_name(const struct file_id *id);
/* What a MAP event and a checkpoint say of a mapping. */
struct ev_map objects_map_of(const struct mapping *m);
/* The MAPPED event of a call that has mapped something. */
void objects_log_mapped(struct thread *t, uint64_t nr, const uint64_t a[6], long ret);

/* Replay: a descriptor of the contents, for private mappings; or -errno. The caller closes it. */
int objects_open(const struct object_name *name);
/* The same, not to be closed by the caller. */
int objects_open_kept(const struct object_name *name);
/* Replay: a changeable copy of a file, for this process. */
int objects_copy(const struct ev_mapped *m);
/* The same for memory that other processes may map, too: where its contents are in the channel's file. `first`: this process
 * fills it in; NULL: waits until it is. */
uint64_t objects_tracked(uint64_t object, const struct ev_mapped *first);

/* Replay: writes a file's contents into `to`, from `base` on. */
void objects_fill(int to, uint64_t base, const struct ev_mapped *m);

#endif
