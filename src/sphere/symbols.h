/* Names of the runtime's own functions, from the symbol table of its file; for crash reports only. */
#ifndef REPRISE_SYMBOLS_H
#define REPRISE_SYMBOLS_H

#include "inproc/types.h"

/* The function at `pc` and how far into it; NULL: not known, or the file cannot be read. */
const char *symbols_find(uint64_t pc, uint64_t *into);

#endif
