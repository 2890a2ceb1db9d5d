/* gdb's agent expressions: conditions of breakpoints, evaluated here so that gdb is not asked at every hit. */
#ifndef REPRISE_RSP_AGENT_H
#define REPRISE_RSP_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent_world {
    void *arg;
    bool (*read)(void *arg, uint64_t addr, void *to, size_t n);
    bool (*reg)(void *arg, unsigned n, uint64_t *value);
};

/* False: the expression is wrong, or reads what is not there; *value is not set. */
bool agent_evaluate(const uint8_t *code, size_t n, const struct agent_world *, uint64_t *value);

#endif
