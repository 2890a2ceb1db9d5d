/* What every replay needs: the recording, the files that belong to it, and the runtime's options. */
#ifndef REPRISE_REPLAY_SETUP_H
#define REPRISE_REPLAY_SETUP_H

#include <limits.h>
#include <stdbool.h>

#include "controller/start_runtime.h"
#include "log/recording.h"

struct replay_setup {
    struct recording *recording;
    char store[PATH_MAX];   /* directory with the recording's files */
    struct options options; /* of the runtime: cache, seed, store, and those of --debug */
};

/* name: NULL for the latest. verify: memory, too. False: the user was told why. */
bool replay_set_up(struct replay_setup *, const char *name, bool cache, bool verify, const struct options *debug);

#endif
