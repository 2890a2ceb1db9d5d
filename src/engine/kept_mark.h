/* The mark of an image (kept.h) that is known to be whole: the checksum of tens of megabytes, for each process that maps a
 * few pages of them, would cost more than the translations save.
 *
 * The mark is the file's modification time, made from what the image is (checksum, inode) and from when (this boot): whoever
 * writes to the file changes it, a copy is another inode, and after a crash of the system, which may have lost the contents but
 * not the times, everything is verified again. */
#ifndef REPRISE_KEPT_MARK_H
#define REPRISE_KEPT_MARK_H

#include <asm/stat.h>

#include "inproc/types.h"

bool kept_is_marked(const struct stat *image, uint64_t checksum);

/* The image in fd, which was verified, or written by the caller. `seen`: as it was before; NULL: nobody else knows the file. */
void kept_mark(int fd, const struct stat *seen, uint64_t checksum);

/* Which boot this is, 0 if nobody has asked yet: processes hand it on, since asking is opening a file. */
uint64_t kept_boot(void);
void kept_set_boot(uint64_t known);

/* When it was used last, in seconds. */
uint64_t kept_last_use(const struct stat *image);

#endif
