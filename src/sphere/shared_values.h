/* Shared pages that change hands all the time are nobody's: each access to them is an event of its own, with the value that was
 * there, so their owners need no order. The instruction is done by the runtime, on a copy of what its operand holds; where such an
 * instruction has been seen, its translation leaves the cache in front of it, so that only the first time costs a fault.
 * A page comes back to an owner when somebody needs all of it (a system call, an instruction that is not done here), or when
 * nobody else has used it for a while; its contents are in the log then. */
#ifndef REPRISE_SHARED_VALUES_H
#define REPRISE_SHARED_VALUES_H

#include "engine/decode.h"
#include "engine/engine.h"
#include "sphere/shared.h"
#include "sphere/thread.h"

#define VALUE_MAX 32 /* bytes: what an event has room for */

struct value { /* what memory holds; what is behind the operand's size is 0 */
    uint64_t words[VALUE_MAX / 8];
};

struct value_access { /* an instruction that touches one value in memory */
    struct insn in;
    uint8_t bytes[INSN_MAX_LEN];
    gaddr addr; /* of its operand */
    uint8_t size;
    const uint8_t *code; /* that does it on a copy; NULL: not made yet */
};

/* The instruction at the thread's pc, if it can be done here. */
bool values_decode(struct thread *t, struct value_access *a);
/* Does it, where memory holds *memory; then *memory is what it holds afterwards. Registers and pc are the next instruction's. */
void values_run(struct thread *t, const struct value_access *a, struct value *memory);

/* From now on this instruction leaves the cache. */
void values_note(const struct value_access *a);
/* engine_host.has_break */
bool values_has(gaddr pc);
/* engine_host.at_break */
enum break_end values_break(struct tblock *tb);

/* Recording: mode.access. */
bool values_record(struct thread *t, struct shared_at at, const struct value_access *a, bool faulted);
/* Recording: where the kernel finds a word that is waited on (a futex between processes): addr itself, or the same memory elsewhere if
 * its page is nobody's. */
gaddr values_word(gaddr addr);
/* Recording: whether a page, which changes hands now, has done so so often that it is to be nobody's. Counts. */
bool values_is_hot(struct shared_page *p, uint64_t now_ns);
/* Recording: it becomes so. */
void values_begin(struct shared_page *p);
/* Who has just got the page otherwise than by a RELEASE counts its version up. */
void values_next_version(struct shared_page *p);
/* Long enough for the threads of a process that was killed to be gone. */
void values_await_dying(void);
/* Recording: whether the page is nobody's, and had better stay so. */
bool values_will_do(const struct shared_page *p);
/* Recording: takes a page that is nobody's; the caller logs its contents. */
bool values_take_back(struct shared_page *p, uint64_t me);

/* insn_run.S */
void insn_run(struct tblock *tb, const void *code);

#endif
