/* Origins: where a trace ends because the value came from outside, or with the memory itself. */
#ifndef REPRISE_WHY_ORIGINS_H
#define REPRISE_WHY_ORIGINS_H

#include "why/why.h"

/* why.c */
struct why_step *why_add_step(struct why *, enum why_kind, struct place what);
void why_set_instruction(struct why *, struct why_step *, uint64_t pc);
size_t why_read_value(struct why *, const struct place *, uint8_t *to);

/* We are in front of a system call that returned the value: completes the step. */
void origins_of_result(struct why *, struct why_step *);
/* We are in front of a system call, at pc, or of the delivery of a signal, which wrote p. */
void origins_of_call(struct why *, const struct place *p, uint64_t pc);
/* We are at the begin of the program: p has been there since, or came up later as fresh memory. */
void origins_of_begin(struct why *, const struct place *p);

enum origin {
    ORIGIN_NONE,  /* the memory is as old as what was found here */
    ORIGIN_MOVED, /* it was elsewhere: *p says where, and we are in front of the move */
    ORIGIN_FOUND, /* it came with its mapping */
};
/* Whether the memory at p was mapped between here and `from`. */
enum origin origins_of_mapping(struct why *, struct position from, struct place *p);

#endif
