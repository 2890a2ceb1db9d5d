/* The programs of a recorded process: what it ran, one after the other, each with a stream of its own. */
#ifndef REPRISE_REPLAY_PROGRAMS_H
#define REPRISE_REPLAY_PROGRAMS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "log/recording.h"

struct program {
    uint64_t stream;
    uint64_t auxv_start, auxv_end, arg_start, arg_end;
    char exe[513];
};

/* *pid as recorded; 0: the initial process, which it becomes. free(*out). 0: why says. */
size_t programs_find(const struct recording *, int *pid, struct program **out, char *why, size_t cap);

/* The process that has this stream; 0: it cannot be read. */
int programs_pid(const struct recording *, uint64_t stream);

/* A line for each process: its number and the program that it began with. */
void programs_print(const struct recording *, FILE *);

#endif
