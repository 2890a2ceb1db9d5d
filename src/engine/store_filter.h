/* Store filter: translated code that looks at where it stores, for watchpoints on pages that are written too often to be
 * protected.
 *
 * In front of each store stands a look-up, by the low 16 bits of the address, in a table of 64 KB. A byte there that is not zero
 * leaves the cache for engine_host.store, which knows exactly what is watched: one look costs the same for any number of
 * watched bytes. Stores whose address or length the translator does not know (xsave, scatter, rep movs, those relative to fs) go
 * there always. Each length of stores, 1 to STORE_MAX, has a table of its own, which marks where one may begin that touches what is
 * watched: a hot variable beside it is none of them. */
#ifndef REPRISE_STORE_FILTER_H
#define REPRISE_STORE_FILTER_H

#include "engine/policy.h"

#define STORE_MAX 64

/* As policy_order, with the look-up. */
extern const struct policy policy_order_stores;

/* What an instruction stores, as far as it is known without its operands. */
enum store_kind {
    STORE_NONE,
    STORE_OPERAND, /* at the operand's address, which is in tblock.s1 when engine_host.store is called */
    STORE_PUSH,    /* below rsp; the address is in s1, too */
    STORE_STRING,  /* at rdi */
    STORE_REPEATED,
    STORE_FS, /* s1 lacks the fs base */
    STORE_UNKNOWN,
};
enum store_kind store_kind(const struct insn *in, size_t *size);

/* From now on code is translated with the look-up; what there was is dropped. Holds for good. */
void store_filter_start(void);
bool store_filter_is_on(void);
void store_filter_clear(void);
/* Stores to [addr, addr + len) are of interest. */
void store_filter_mark(gaddr addr, uint64_t len);

#endif
