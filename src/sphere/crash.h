/* A readable report when the runtime itself faults. */
#ifndef REPRISE_CRASH_H
#define REPRISE_CRASH_H

#include "sphere/sigframe.h"

void crash_report(struct thread *t, const struct siginfo_raw *info, const struct mcontext *mc) __attribute__((noreturn));

#endif
