/* The system-call model: which calls need more than being forwarded. */
#ifndef REPRISE_MODEL_H
#define REPRISE_MODEL_H

#include "sphere/gate.h"

#define MODEL_CALLS 512

extern gate_fn *const model_special[MODEL_CALLS];

/* Lifts write protections of ours from memory that the call may write. */
void model_before_kernel_write(uint64_t nr, const uint64_t a[6]);

#endif
