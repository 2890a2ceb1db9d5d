/* Options of the verbs that read recordings. */
#ifndef REPRISE_CLI_OPTIONS_H
#define REPRISE_CLI_OPTIONS_H

#include <getopt.h>

#include "cli/cli.h"

enum { VERB_DONE = 256, VERB_WRONG };

/* The next option, as getopt_long() gives it, or -1: argv[optind] is the first argument that is none. -h and --help ('h') are
 * done here: VERB_DONE, the verb is to return 0. VERB_WRONG: the user was told, return EXIT_OURS. */
int verb_option(const struct verb *, int argc, char **argv, const char *letters, const struct option *);

#endif
