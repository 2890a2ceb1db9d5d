/* What track.c and the back ends share. */
#ifndef REPRISE_CKPT_TRACK_PARTS_H
#define REPRISE_CKPT_TRACK_PARTS_H

#include "ckpt/rt/ranges.h"
#include "sphere/aspace.h"

/* LOST: the kernel does not track all of it any more. */
enum collected { COLLECTED, COLLECT_FAILED, COLLECT_LOST };

struct track_backend {
    const char *name;
    bool (*start)(void);  /* false: does not work here */
    void (*forget)(void); /* after a fork, in the child */
    /* Pages of the mapping piece [start, end) that were written since the last time; from now on, they are not. `is_new`: all
     * that are there count as written. Appends to *out. */
    enum collected (*collect)(const struct mapping *m, gaddr start, gaddr end, bool is_new, struct ranges *out);
    void (*changed)(gaddr start, gaddr end);
    void (*opened)(gaddr start, gaddr end);
};

extern const struct track_backend track_uffd, track_mprotect;

#endif
