/* Times: when the events of the streams came, as far as the controller saw it. A bounded number of samples; the longer the
 * recording, the farther apart. They go into the END frame, docs/formats.md. */
#ifndef REPRISE_TIMES_H
#define REPRISE_TIMES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TIMES_MAX 4096

struct times {
    uint64_t began;    /* ms, of the same clock */
    uint64_t interval; /* ms between two samples of a stream */
    size_t n;
    struct time_sample {
        uint64_t stream, position, ms;
    } list[TIMES_MAX];
};

void times_begin(struct times *, uint64_t now_ms);
/* The first `position` bytes of the stream have come by now. *last: when it was sampled before, 0 if never. */
void times_note(struct times *, uint64_t stream, uint64_t position, uint64_t now_ms, uint64_t *last);
/* A JSON array: stream, position and ms since the begin, one behind the other. */
void times_write(const struct times *, FILE *);

#endif
