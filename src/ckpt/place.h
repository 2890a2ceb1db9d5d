/* Words that the recorded program's runtime and the controller share about checkpoints. */
#ifndef REPRISE_CKPT_PLACE_H
#define REPRISE_CKPT_PLACE_H

#include <stdint.h>

#define CKPT_PAGE 4096u
#define CKPT_BLOCK 64u /* a memory block: what is compared and stored */
#define CKPT_PAGE_BLOCKS (CKPT_PAGE / CKPT_BLOCK)

/* Where in its stream a checkpoint was taken: struct position of rsp/target.h, with steps 0, and when. */
struct ckpt_place {
    uint64_t event;   /* events of the stream before this place */
    uint64_t ticks;   /* of the R-thread that has the turn */
    uint64_t time_ns; /* since 1970; what `info` shows the interval from */
    uint32_t thread;  /* R-thread that has the turn */
    uint32_t why;     /* enum ckpt_why */
};
_Static_assert(sizeof(struct ckpt_place) == 32, "on disk");

enum ckpt_why { CKPT_TIMER, CKPT_SIGNAL, CKPT_EXIT, CKPT_ASKED };

struct ckpt_range {
    uint64_t start, end; /* whole pages */
};
_Static_assert(sizeof(struct ckpt_range) == 16, "on disk");

/* What a page contained before anybody wrote it: blocks that are in no checkpoint have that. */
enum ckpt_base {
    CKPT_BASE_ZERO, /* anonymous memory: zero blocks need not be stored */
    CKPT_BASE_FILE, /* a private mapping of a file: all blocks are stored when the page is first seen */
};

#endif
