/* Log writer: a thread that compresses frames and appends them to the log, behind a queue of bounded size.
 * Invariant: the file holds whole frames, in the order of writer_put(), and at most one torn one at its end. */
#ifndef REPRISE_LOG_WRITER_H
#define REPRISE_LOG_WRITER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/frame.h"

enum writer_trouble { WRITER_FINE, WRITER_FAILED, WRITER_LIMIT };

struct log_writer {
    int fd;
    uint64_t limit;   /* bytes of log */
    uint64_t raw;     /* bytes of events so far */
    uint64_t stored;  /* bytes of the file */
    uint32_t trouble; /* enum writer_trouble, atomic: nothing is written any more */
    int error;        /* WRITER_FAILED: errno */

    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct writer_job *first, **last;
    size_t queued; /* bytes */
    bool ending;
    struct ZSTD_CCtx_s *zstd;
    uint8_t *frame;
};

/* The header goes out at once, the thread starts with writer_start(). False: errno says why. */
bool writer_open(struct log_writer *, int fd, uint64_t limit, const char *header, size_t header_len);
bool writer_start(struct log_writer *);

/* False: the queue is full; better take nothing more out of the rings. */
bool writer_has_room(struct log_writer *);

/* `raw` is malloc()ed and belongs to the writer from now on. At most FRAME_RAW_MAX bytes. Never waits. */
void writer_put(struct log_writer *, enum frame_kind, uint64_t stream, uint64_t position, void *raw, size_t len);

/* Writes what is queued, ends the thread. */
void writer_finish(struct log_writer *);
/* A last frame, after writer_finish(), whatever the limit. */
void writer_end(struct log_writer *, const char *text, size_t len);

#endif
