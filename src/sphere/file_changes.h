/* Files that change while they are mapped: shared mappings, and pages of private ones that the program has not written, change
 * with the file. The changes that the program makes by itself (write, truncate ...) are logged and made again at replay.
 *
 * At replay a file is in one of three places: the recording's store, as long as it does not change; a copy of this process's own,
 * once it has changed; the channel's memory, if its pages are tracked (shared.h). All mappings of it move along. */
#ifndef REPRISE_FILE_CHANGES_H
#define REPRISE_FILE_CHANGES_H

#include "log/events.h"
#include "sphere/aspace.h"
#include "sphere/thread.h"

/* Recording: a file was opened, or is about to be mapped. */
void file_changes_opened(struct thread *t, long fd, uint64_t flags);
void file_changes_mapped(int fd, const struct file_id *id);
/* A child is about to be made, which may write to what this process has open and mapped privately, and the other way round. */
void file_changes_share(struct thread *t);
/* The CHANGE events of a call that is done, behind its SYSCALL. */
void file_changes_log(struct thread *t, uint64_t nr, const uint64_t a[6], long ret);
/* The same for truncate(path). */
void file_changes_truncated(struct thread *t, gaddr path);

/* Whether there were any in this process or its parents. */
bool file_changes_any(void);
/* Before a call: if it changes a file that processes share, holds its pages. True: the turn must not go before it is done. */
bool file_changes_hold(struct thread *t, uint64_t nr, const uint64_t a[6]);

/* ---- replay ---- */

struct file_source { /* where a file's contents are to be mapped from */
    int fd;          /* -1: nowhere; stays open */
    uint64_t base;   /* where the file starts in it */
};

/* A file is about to be mapped, as the event says. */
struct file_source file_changes_source(const struct ev_mapped *v);
/* The number that the file has as a shared object. */
uint64_t file_changes_object(const struct ev_mapped *v);
/* Maps the contents at `offset` of fd; pages of this private mapping that the program has written stay as they are. */
void file_changes_move_private(gaddr start, gaddr end, int prot, int fd, uint64_t offset);
/* Mappings have begun to show what others make of their file: what is not mapped otherwise need not be known any more. */
void file_changes_shown(void);
/* What is mapped of the file may be longer from now on than what was kept of it. */
void file_changes_grow(uint64_t dev, uint64_t ino);
/* What this process has for itself of files, its child will have for itself, too. */
void file_changes_before_fork(void);
void file_changes_after_fork(bool is_child);
/* Makes a change in what this process, or all of them, have mapped. */
void file_changes_apply(const struct ev_change *c);

#endif
