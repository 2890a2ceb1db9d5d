/* Tests of code that is written at run time; see smc.c. */
#ifndef REPRISE_ASM_SMC_H
#define REPRISE_ASM_SMC_H

#include <stdint.h>

struct smc_test {
    const char *name;
    uint64_t (*run)(void); /* the result, the same on every run */
};
extern const char *smc_current; /* name of the running test, for lines of its own */
extern const struct smc_test smc_tests[]; /* up to a name of NULL */

#endif
