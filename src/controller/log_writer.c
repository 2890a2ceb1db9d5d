/* Log writer: see log_writer.h. */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

#include "controller/log_writer.h"

#define QUEUE_BYTES (16u << 20)
#define LEVEL 1
#define BEHIND \
    (QUEUE_BYTES / 2) /* so much waits: what comes next is stored as it is, rather than have the program wait */

struct writer_job {
    struct writer_job *next;
    enum frame_kind kind;
    uint64_t stream, position;
    void *raw;
    size_t len;
};

static void set_trouble(struct log_writer *w, enum writer_trouble t) {
    __atomic_store_n(&w->trouble, t, __ATOMIC_RELEASE);
}

/* One frame with one write. What was written of a frame that did not fit is taken back. 0, or what is wrong. */
static int try_append(struct log_writer *w, const void *frame, size_t len) {
    size_t done = 0;
    while (done < len) {
        ssize_t n = write(w->fd, (const char *)frame + done, len - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            int error = n < 0 ? errno : EIO;
            return done && ftruncate(w->fd, (off_t)w->stored) < 0 ? EIO : error; /* a torn frame: nothing may follow */
        }
        done += (size_t)n;
    }
    __atomic_add_fetch(&w->stored, len, __ATOMIC_RELAXED);
    return 0;
}

static bool is_written(struct log_writer *w, int error) {
    if (!error) return true;
    w->error = error;
    set_trouble(w, WRITER_FAILED);
    return false;
}

static bool append(struct log_writer *w, const void *frame, size_t len) {
    return is_written(w, try_append(w, frame, len));
}

static int write_frame(struct log_writer *w, const struct writer_job *j, bool compress) {
    size_t n =
        frame_encode(compress ? w->zstd : NULL, LEVEL, j->kind, j->stream, j->position, j->raw, j->len, w->frame);
    return n ? try_append(w, w->frame, n) : 0;
}

static void write_job(struct log_writer *w, const struct writer_job *j, bool compress) {
    if (w->trouble) return;
    if (w->stored >= w->limit) {
        set_trouble(w, WRITER_LIMIT);
        return;
    }
    compress |= j->len >= w->limit - w->stored; /* not a whole frame beyond the limit */
    int error = write_frame(w, j, compress);
    if (error == ENOSPC && !compress) error = write_frame(w, j, true); /* it may fit then */
    if (is_written(w, error) && j->kind == FRAME_EVENTS) __atomic_add_fetch(&w->raw, j->len, __ATOMIC_RELAXED);
}

static void *writer_main(void *arg) {
    struct log_writer *w = arg;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (!w->first && !w->ending) pthread_cond_wait(&w->work, &w->lock);
        struct writer_job *j = w->first;
        if (!j) break;
        w->first = j->next;
        if (!w->first) w->last = &w->first;
        bool behind = w->queued > BEHIND;
        pthread_mutex_unlock(&w->lock);
        write_job(w, j, !behind);
        size_t len = j->len;
        free(j->raw);
        free(j);
        pthread_mutex_lock(&w->lock);
        w->queued -= len;
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

bool writer_open(struct log_writer *w, int fd, uint64_t limit, const char *header, size_t header_len) {
    *w = (struct log_writer){.fd = fd, .limit = limit, .last = NULL};
    w->frame = malloc(frame_room(FRAME_RAW_MAX)); /* untouched memory costs nothing */
    if (!w->frame) return false;
    size_t n = frame_encode(NULL, 0, FRAME_HEADER, 0, 0, header, header_len, w->frame);
    if (n == 0) {
        errno = E2BIG;
        return false;
    }
    if (append(w, w->frame, n)) return true;
    errno = w->error;
    return false;
}

/* Buffers come and go all the time: what has been mapped for one is kept for the next. */
static void keep_memory(void) {
    mallopt(M_MMAP_THRESHOLD, QUEUE_BYTES);
    mallopt(M_TRIM_THRESHOLD, 2 * QUEUE_BYTES);
}

bool writer_start(struct log_writer *w) {
    keep_memory();
    w->last = &w->first;
    w->zstd = ZSTD_createCCtx();
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->work, NULL);
    errno = ENOMEM;
    return w->zstd && (errno = pthread_create(&w->thread, NULL, writer_main, w)) == 0;
}

bool writer_has_room(struct log_writer *w) {
    pthread_mutex_lock(&w->lock);
    bool room = w->queued < QUEUE_BYTES;
    pthread_mutex_unlock(&w->lock);
    return room;
}

void writer_put(struct log_writer *w, enum frame_kind kind, uint64_t stream, uint64_t position, void *raw, size_t len) {
    struct writer_job *j = malloc(sizeof *j);
    if (!j) {
        w->error = ENOMEM;
        set_trouble(w, WRITER_FAILED);
        free(raw);
        return;
    }
    *j = (struct writer_job){.kind = kind, .stream = stream, .position = position, .raw = raw, .len = len};
    pthread_mutex_lock(&w->lock);
    *w->last = j;
    w->last = &j->next;
    w->queued += len;
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
}

void writer_finish(struct log_writer *w) {
    pthread_mutex_lock(&w->lock);
    w->ending = true;
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
}

void writer_end(struct log_writer *w, const char *text, size_t len) {
    if (w->trouble == WRITER_FAILED && w->error != ENOSPC) return;
    size_t n = frame_encode(NULL, 0, FRAME_END, 0, 0, text, len, w->frame);
    if (n) append(w, w->frame, n);
}
