/* Lines: function and source line of a code address, from the files of the recording. */
#ifndef REPRISE_WHY_LINES_H
#define REPRISE_WHY_LINES_H

#include "rsp/target.h"

struct source {
    char function[256]; /* as it is called in the source; "": not known */
    uint64_t offset;    /* from its begin, if that is known */
    char file[512];     /* of the source; "": not known */
    int line;
    char object[256]; /* path of the program or library; "": none */
};

struct lines;
struct lines *lines_open(struct target *); /* NULL: out of memory */
void lines_close(struct lines *);

/* At the present place of the target. False: nothing is known of pc. */
bool lines_find(struct lines *, uint64_t pc, struct source *out);
/* Whether the file that is mapped at addr has bytes for it: the rest of a page of data is zero at the begin. */
bool lines_has_bytes(struct lines *, uint64_t addr);
/* A variable by its name: at the present place of the target. False: there is none. */
bool lines_variable(struct lines *, const char *name, uint64_t *addr, size_t *len);

#endif
