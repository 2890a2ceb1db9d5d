/* Old ways into the kernel: int $0x80 with the 32-bit call numbers, and the vsyscall page. */
#ifndef REPRISE_LEGACY_H
#define REPRISE_LEGACY_H

#include "engine/tblock.h"

/* Performs the call of the instruction at t->pc, of `len` bytes. */
void legacy_int80(struct tblock *t, unsigned len);

/* t->pc is not mapped. True: it was an entry of the vsyscall page, and the call is done. */
bool legacy_vsyscall(struct tblock *t);

/* A mode's gate has made such a call, result in rax: the program's registers come back. */
void legacy_done(struct tblock *t);
/* The same when it was not made and has to be tried again. */
void legacy_retry(struct tblock *t);

/* Calls that 64-bit programs do not have: issues one; what it wrote. In events they have the number LEGACY_CALL + nr. */
#define LEGACY_CALL 0x8000
long legacy_issue(struct tblock *t, uint32_t nr, const uint64_t a[6]);
struct writes;
void legacy_writes(uint32_t nr, const uint64_t a[6], struct writes *w);

#endif
