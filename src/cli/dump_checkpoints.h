#ifndef REPRISE_CLI_DUMP_CHECKPOINTS_H
#define REPRISE_CLI_DUMP_CHECKPOINTS_H

#include <stdbool.h>

/* False: some are damaged; the user was told. */
bool dump_checkpoints(const char *dir);

#endif
