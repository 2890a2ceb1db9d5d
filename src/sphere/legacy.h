/* Old ways into the kernel: int $0x80 with the 32-bit call numbers, and the vsyscall page. */
#ifndef REPRISE_LEGACY_H
#define REPRISE_LEGACY_H

#include "engine/tblock.h"

/* Performs the call; t->pc is behind the instruction (of `len` bytes), which is done again if a signal comes first. */
void legacy_int80(struct tblock *t, unsigned len);

/* t->pc is not mapped. True: it was an entry of the vsyscall page, and the call is done. */
bool legacy_vsyscall(struct tblock *t);

#endif
