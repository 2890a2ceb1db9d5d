/* What cpuid answers, asked once for a tree of processes: where a hypervisor answers it, it takes longer than ten system calls,
 * and each program's loader asks forty times. Answers are handed on through fork and execve. */
#ifndef REPRISE_CPUID_ANSWERS_H
#define REPRISE_CPUID_ANSWERS_H

#include "inproc/types.h"

/* in and out: eax, ebx, ecx, edx */
void cpuid_answer(uint32_t regs[4]);

/* Whether the processor's `loop` is as quick as its other branches: on AMD's it is, on Intel's it takes seven of them. */
bool cpuid_loop_is_quick(void);

/* rorx and its kind */
bool cpuid_has_bmi2(void);

/* All answers as an option for the runtime: ",cpuid=..."; its length. */
#define CPUID_TEXT 2560
size_t cpuid_to_text(char *out, size_t cap);
void cpuid_from_text(const char *text);

#endif
