/* The texts of a recording: its header and its end. docs/formats.md says what is in them. */
#ifndef REPRISE_HEADER_H
#define REPRISE_HEADER_H

#include <stddef.h>
#include <stdint.h>

#include "controller/cpu.h"

struct header_facts {
    int argc;
    char **argv;
    const char *path; /* of the command */
    const char *store;
    unsigned long seed;
    enum cpu_level cpu;
    int chaos, check;
};

/* JSON; free() it. NULL: out of memory. */
char *header_text(const struct header_facts *, size_t *len);

struct end_facts {
    int status; /* as wait() gives it */
    const char *reason;
    uint64_t streams, raw, stored;
    unsigned left; /* processes that go on unrecorded */
    const struct times *times;
};
char *end_text(const struct end_facts *, size_t *len);

#endif
