/* Why: where a value came from. Walks back to the last store to some memory, looks at what that store read, and so on, until
 * the value turns out to be an input, a constant, or something that no single instruction explains. */
#ifndef REPRISE_WHY_H
#define REPRISE_WHY_H

#include <stdio.h>

#include "log/recording.h"
#include "rsp/target.h"
#include "why/flow.h"
#include "why/lines.h"

#define WHY_SHOWN 16 /* bytes of a value that are kept */

enum why_kind {
    WHY_WRITE,    /* an instruction stores to memory */
    WHY_REGISTER, /* an instruction makes the value in a register */
    WHY_INPUT,    /* a system call writes memory, or returns it */
    WHY_MOVED,    /* memory is moved to another address */
    WHY_BEGIN,    /* it was there when the program began, or came with a mapping */
    WHY_LOST,     /* the trace ends: `text` says why */
};

struct why_input {
    struct place place;
    uint64_t value;
    bool has_value;
};

struct why_step {
    enum why_kind kind;
    struct position at;
    int thread;
    uint64_t pc;
    struct source source;
    struct place what;
    char insn[96];
    uint8_t before[WHY_SHOWN], after[WHY_SHOWN];
    size_t n_before, n_after; /* bytes known; 0: none */
    struct why_input input[FLOW_INPUTS];
    size_t n_inputs;
    unsigned followed; /* one bit for each input */
    bool is_constant;
    char text[1024];
};

struct why {
    struct target *target;
    const struct recording *recording;
    uint64_t stream;
    struct lines *lines;
    struct place asked; /* what was asked for, and what it holds */
    uint8_t value[WHY_SHOWN];
    size_t n_value;
    bool is_elsewhere; /* shared memory: the value is what this process left there */
    struct why_step *steps;
    size_t n, room;
};

struct why_question {
    struct target *target;
    const struct recording *recording;
    uint64_t stream;
    uint64_t program; /* of the process, from 0 on: goes into the positions that are printed */
    struct place place;
    unsigned stores; /* so many stores back */
};

/* The target comes back to its present place. False: out of memory, or it cannot be left. */
bool why_ask(struct why *, const struct why_question *);
void why_free(struct why *);
void why_print(const struct why *, FILE *to);
void why_print_json(const struct why *, FILE *to); /* one object a line */

/* ADDRESS[:LEN], $REGISTER or VARIABLE, at the present place. False: it is none of these. */
bool why_parse_place(struct target *, const char *text, struct place *out);

#endif
