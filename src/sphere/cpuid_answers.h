/* What cpuid answers, asked once for all processes of a recording: where a hypervisor answers it, it is slower than a system
 * call, and each program's loader asks dozens of times. */
#ifndef REPRISE_CPUID_ANSWERS_H
#define REPRISE_CPUID_ANSWERS_H

#include "inproc/types.h"

/* in and out: eax, ebx, ecx, edx */
void cpuid_answer(uint32_t regs[4]);

#endif
