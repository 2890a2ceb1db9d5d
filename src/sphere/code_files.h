/* Files that translated code comes from, and which of them the program itself can change.
 * Untouched pages of a private mapping follow their file, so writing to the file changes the code without a fault. A file
 * is "loose" once the program holds it open for writing: its code is checked at every entry. Writing to /proc/PID/mem is
 * looked at call by call.
 * Limits: a descriptor for writing that was there before the code, or is somebody else's, goes unnoticed, unless the
 * mapping itself was made through it. */
#ifndef REPRISE_CODE_FILES_H
#define REPRISE_CODE_FILES_H

#include "inproc/types.h"
#include "sphere/aspace.h"

/* Code of mapping m is about to be translated: whether its file is loose. Caller holds cache_lock. */
bool code_files_is_loose(const struct mapping *m);

/* A descriptor (or -errno) that was opened with flags; returns it. Takes cache_lock if need be. */
long code_files_opened(long fd, uint64_t flags);
/* fd is about to be mapped. Takes cache_lock if need be. */
void code_files_mapped(int fd, int prot, int flags);

/* n bytes were written to fd at pos (-1: at its position), and there is a descriptor of /proc/PID/mem. */
void code_files_written(int fd, int64_t pos, size_t n);
extern bool code_files_mem_open;

/* Whether fd is the program's own memory as a file, and where the n bytes that were just written to it went. pos: -1, its own. */
bool code_files_mem_range(int fd, int64_t pos, size_t n, gaddr *start);
/* The contents of a mapped file have changed without a call of this process. */
void code_files_changed(uint64_t dev, uint64_t ino);

#endif
