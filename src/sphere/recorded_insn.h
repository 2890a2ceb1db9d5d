/* Instructions whose results a recording keeps: rdtsc, rdtscp, cpuid, rdrand, rdseed, rdpid, xgetbv, lsl. */
#ifndef REPRISE_RECORDED_INSN_H
#define REPRISE_RECORDED_INSN_H

#include "engine/tblock.h"
#include "log/events.h"

struct recorded_insn {
    uint16_t which;    /* enum recorded_kind */
    uint8_t reg;       /* destination of rdrand, rdseed, rdpid and lsl */
    uint8_t size;      /* bytes of that register that are written: 2, 4 (and the upper half cleared) or 8 */
    uint8_t len;       /* of the instruction */
    uint16_t selector; /* lsl */
};

/* The instruction at t->pc. False: nothing is left to do at this pc; the processor refuses the instruction and its signal was
 * raised, or there is another instruction by now, which will be run. */
bool recorded_insn_decode(struct tblock *t, struct recorded_insn *out);
/* It reads the time-stamp counter, which the program may have had forbidden to itself. */
bool recorded_insn_is_tsc(const struct recorded_insn *in);
/* The processor's answer to what it will not do: the fault is raised. */
void recorded_insn_forbid(struct tblock *t);
/* Executes it with the inputs in the thread block. */
void recorded_insn_execute(const struct recorded_insn *in, const struct tblock *t, struct ev_insn *result);
/* Results into registers and flags, pc behind the instruction. */
void recorded_insn_apply(const struct recorded_insn *in, struct tblock *t, const struct ev_insn *result);

#endif
