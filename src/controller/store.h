/* Store: contents of the files that recorded programs mapped, one copy for all recordings.
 *
 *     STORE/ab/cdef...   an object, see log/place.h
 *     STORE/index        files whose contents are known, one a line, so that they need not be read again:
 *                        dev ino size mtime_ns ctime_ns mode (hex), name, path
 *
 * Objects appear whole, by rename, and never change. The index is a hint: lines that do not parse are skipped. */
#ifndef REPRISE_STORE_H
#define REPRISE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "log/events.h"

struct store {
    int dir;
    uint64_t min_free; /* bytes that a copy must leave on the disk */
    bool gives_up;     /* nobody waits any longer for what is being kept */
};

struct known_file {
    uint64_t dev, ino, size, mtime_ns, ctime_ns;
    struct object_name name;
    uint32_t mode;
    char *path; /* to be freed */
};

/* Opens, makes it if it is not there. False: the user was told why. */
bool store_open(struct store *, const char *path);

bool store_has(const struct store *, struct object_name, uint64_t size);

/* Makes sure that the contents of fd are in the store. 0, or the errno of what went wrong; `st` is filled in anyway if the
 * first fstat() worked. */
int store_keep(struct store *, int fd, struct object_name *name, struct stat *st);

/* The identity of a file, and where it is as far as /proc tells. */
struct known_file known_of(int fd, const struct stat *st, struct object_name name);

/* Adds a line to the index, unless the file is so young that its times do not tell changes apart. */
void store_remember(struct store *, const struct known_file *);

/* Files of the index whose objects are there, the youngest lines first, at most `max`. Returns how many; free() the array. */
size_t store_recall(struct store *, struct known_file **files, size_t max);

#endif
