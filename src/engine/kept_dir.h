/* The directory of what is kept for later processes: images of translations (kept.h) and lookup tables (kept_tables.h).
 *
 * A file is named by a hash of what it is for, this runtime and the policy. Files belong to the user, are made anew and renamed, and
 * all of them together are bounded in size. No directory: nothing is kept, and nothing is found. */
#ifndef REPRISE_KEPT_DIR_H
#define REPRISE_KEPT_DIR_H

#include <asm/stat.h>

#include "inproc/types.h"

#define KEPT_NAME 600 /* bytes for a path */

/* dir: where; NULL: nowhere. build: identifies this runtime. */
void kept_dir_start(const char *dir, uint64_t build);
bool kept_dir_is_there(void);
uint64_t kept_dir_build(void);

/* Of all files together. */
void kept_dir_set_limit(uint64_t bytes);

/* The path of the file for what has that hash. */
void kept_dir_name(char name[KEPT_NAME], uint64_t hash);

/* To be read; -errno if there is none that can be trusted as far as its owner. */
long kept_dir_open(const char *name, struct stat *st);

/* Whether a file of that size may be written at all. */
bool kept_dir_may_write(uint64_t bytes);

/* A file that is made anew, under another name until it is whole. */
struct kept_writer {
    long fd;
    bool failed;
    char temp[KEPT_NAME];
};
bool kept_dir_begin(struct kept_writer *w);
void kept_dir_put(struct kept_writer *w, const void *from, size_t bytes, uint64_t offset);
/* It takes its name, marked as whole with its checksum (kept_mark.h); or all stays as it was. */
void kept_dir_end(struct kept_writer *w, const char *name, uint64_t checksum);

/* Removes files when all of them together are too large: those not used for longest. */
void kept_dir_trim(void);
/* Whether there is room for one more file of a kind that is not needed much, known by its size: a quarter of all is enough for them.
 * One that was not used for long makes way. */
bool kept_dir_has_room(uint64_t bytes);

#endif
