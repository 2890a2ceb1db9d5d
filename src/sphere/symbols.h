/* Names of the runtime's own functions, from the symbol table of its file; for crash reports only. */
#ifndef REPRISE_SYMBOLS_H
#define REPRISE_SYMBOLS_H

#include "inproc/types.h"

/* The function at `offset` in the runtime's image and how far into it; NULL: not known, or the file cannot be read. */
const char *symbols_find(uint64_t offset, uint64_t *into);

#endif
