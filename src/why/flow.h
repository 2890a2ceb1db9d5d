/* Flow: where the value that an instruction writes comes from. The only file of the command that knows Zydis is flow.c. */
#ifndef REPRISE_WHY_FLOW_H
#define REPRISE_WHY_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Registers by number: 0-15 rax rcx rdx rbx rsp rbp rsi rdi r8.., then the vector registers. */
#define REGISTER_VECTOR 16
#define REGISTERS 48

/* Some bytes that hold a value. */
struct place {
    bool is_register;
    uint32_t reg, offset; /* is_register: which, and the first byte of it */
    uint64_t addr;        /* otherwise */
    size_t len;
};

/* What an instruction finds. */
struct machine {
    uint64_t pc, rflags, gpr[16], fs_base, gs_base;
};

enum flow_kind {
    FLOW_COPY,           /* of input[0] */
    FLOW_COMPUTED,       /* from the inputs */
    FLOW_CONSTANT,       /* value: the instruction has it, or it follows from its address */
    FLOW_RETURN_ADDRESS, /* of a call */
    FLOW_CALL,           /* a system call */
    FLOW_PROCESSOR,      /* time, chance, or what processor it is */
};

#define FLOW_INPUTS 4
struct flow {
    enum flow_kind kind;
    struct place written; /* the part of what was asked for that the instruction writes */
    struct place input[FLOW_INPUTS];
    size_t n_inputs;
    uint64_t value; /* FLOW_CONSTANT */
};

/* What the instruction at m->pc, whose bytes are given, has to do with `want`. False: it does not write any of it. */
bool flow_of(const struct machine *m, const uint8_t *bytes, size_t n, const struct place *want, struct flow *out);
/* The instruction in AT&T syntax, as gdb prints it; "" if it is none. */
void flow_text(uint64_t pc, const uint8_t *bytes, size_t n, char *text, size_t cap);
bool flow_is_system_call(const uint8_t *bytes, size_t n);
const char *flow_register_name(const struct place *);
/* By its name, with or without $ or %; false: no such register. */
bool flow_register_by_name(const char *name, struct place *out);

#endif
