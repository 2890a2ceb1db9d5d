/* Identity of a file: by what it is, not by its name. */
#ifndef REPRISE_FILE_ID_H
#define REPRISE_FILE_ID_H

#include "inproc/types.h"

struct file_id { /* all zero: anonymous memory */
    uint64_t dev, ino, size, mtime_ns, ctime_ns;
    uint32_t birth; /* not 0; tells files apart that have had the same inode one after the other */
};

#define FILE_IS_ON_NO_DEVICE(dev) (((dev) >> 8 & 0xfff) == 0) /* tmpfs, overlayfs */

/* What fd is. True: a regular file. */
bool file_identify(int fd, struct file_id *id);
/* Whether fd is /dev/zero: mapped shared, it is anonymous memory. */
bool file_is_zero(int fd);
/* Whether fd is shared anonymous memory, which the kernel shows as a file in map_files; then *ino tells which. */
bool file_is_anonymous(int fd, uint64_t *ino);

#endif
