/* Reading texts of the kernel's line by line, and writing others. */
#ifndef REPRISE_PROC_TEXT_H
#define REPRISE_PROC_TEXT_H

#include "inproc/types.h"

struct lines { /* of an open file */
    int fd;
    size_t at, len;
    char buf[8192];
};

/* The next line without its newline; NULL at the end. */
char *lines_next(struct lines *in);

struct text { /* a file in the making */
    int fd;
    size_t len;
    char buf[4096];
};

void text_put(struct text *out, const char *s, size_t n);
void text_put_line(struct text *out, const char *line);
/* All of it is in the file. */
void text_flush(struct text *out);

#endif
