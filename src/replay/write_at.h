/* Writes all of it at a place of a file. False: errno says why. */
#ifndef REPRISE_WRITE_AT_H
#define REPRISE_WRITE_AT_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

static inline bool write_at(int fd, const void *from, size_t n, uint64_t at) {
    for (size_t done = 0; done < n;) {
        ssize_t put = pwrite(fd, (const char *)from + done, n - done, (off_t)(at + done));
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        done += (size_t)put;
    }
    return true;
}

#endif
