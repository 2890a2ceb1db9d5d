/* Writing into the program's memory as a debugger does: code that is not writable, too. */
#ifndef REPRISE_FORCED_WRITE_H
#define REPRISE_FORCED_WRITE_H

#include "inproc/types.h"

/* forced: even if the program itself could not. Translations of what is changed are dropped. False: it cannot be done. */
bool forced_write(gaddr addr, const void *from, size_t len, bool forced);
/* The same for what memory is known to have held, also where nobody may write. */
bool forced_fill(gaddr addr, const void *from, size_t len);

#endif
