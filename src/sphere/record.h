/* Recording: inputs of the program go to the log as it runs. */
#ifndef REPRISE_RECORD_H
#define REPRISE_RECORD_H

#include "sphere/channel.h"
#include "sphere/loader.h"
#include "sphere/thread.h"

/* The first events of a stream: the image as the loader made it. */
void record_start(struct thread *t, const struct load_result *r, uint64_t parent);

#endif
