/* A readable report when the runtime itself faults, and a word when the program stores into the runtime's memory. */
#ifndef REPRISE_CRASH_H
#define REPRISE_CRASH_H

#include "sphere/sigframe.h"

void crash_report(struct thread *t, const struct siginfo_raw *info, const struct mcontext *mc)
    __attribute__((noreturn));

/* For testing the report (--debug crash=1). */
void crash_on_purpose(void);

/* A store of the program to addr failed: says so, once, if the address is the runtime's. */
void crash_name_wild_store(gaddr addr, gaddr pc);

#endif
