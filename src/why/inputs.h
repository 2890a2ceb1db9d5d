/* Inputs: what the log tells of the system calls through which values came in, and of the mappings that memory is from. */
#ifndef REPRISE_WHY_INPUTS_H
#define REPRISE_WHY_INPUTS_H

#include "log/recording.h"

struct call {
    uint64_t event; /* in the stream */
    uint64_t ticks;
    unsigned number;
    uint64_t args[6];
    int64_t ret;
};

/* What a descriptor is. */
struct opened {
    bool is_known;
    bool is_standard; /* 0, 1, 2 as the program found them: `standard` */
    int standard;
    struct call by;      /* the call that made it */
    bool in_this_stream; /* by.event is of the stream that was asked for */
    bool has_offset;     /* a file that is read and written at an offset... */
    int64_t offset;      /* ... which is here */
};

/* The call, at the place of event number `event`, that has written to addr (0: that has a result); false: something else has, whose kind
 * and code are given. */
bool inputs_call(const struct recording *, uint64_t stream, uint64_t event, uint64_t addr, struct call *out,
                 unsigned *kind, unsigned *code);
/* What descriptor fd was before that event. */
void inputs_descriptor(const struct recording *, uint64_t stream, uint64_t event, int fd, struct opened *out);
/* The last call in [from, to) that mapped, moved or unmapped the byte at addr; false: none. */
bool inputs_mapping(const struct recording *, uint64_t stream, uint64_t from, uint64_t to, uint64_t addr,
                    struct call *out);
/* How the process found its arguments and environment. */
bool inputs_start(const struct recording *, uint64_t stream, struct ev_start *out);

#endif
