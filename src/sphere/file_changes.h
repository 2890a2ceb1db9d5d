/* Files that change while they are mapped: shared mappings, and pages of private ones that the program has not written, change
 * with the file. The changes that the program makes by itself (write, truncate ...) are logged and made again at replay. */
#ifndef REPRISE_FILE_CHANGES_H
#define REPRISE_FILE_CHANGES_H

#include "log/events.h"
#include "sphere/aspace.h"
#include "sphere/thread.h"

/* Recording: a file was opened, or is about to be mapped. */
void file_changes_opened(long fd, uint64_t flags);
void file_changes_mapped(int fd, const struct file_id *id);
/* The CHANGE events of a call that is done, behind its SYSCALL. */
void file_changes_log(struct thread *t, uint64_t nr, const uint64_t a[6], long ret);

/* Whether there were any in this process or its parents. */
bool file_changes_any(void);

/* Replay: what a mapped file contained when it was mapped. */
void file_changes_note(uint64_t dev, uint64_t ino, const struct object_name *name);
/* Makes a change in this process's copy of the file. */
void file_changes_apply(const struct ev_change *c);

#endif
