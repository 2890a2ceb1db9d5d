/* What the verbs of the command line share. */
#ifndef REPRISE_CLI_H
#define REPRISE_CLI_H

#include "controller/complain.h"

struct verb {
    const char *name;
    const char *summary;                /* one line, for `reprise help`; NULL: not shown */
    const char *usage;                  /* the whole text of `reprise VERB --help` */
    int (*main)(int argc, char **argv); /* argv[0] is the verb; returns the exit status */
};

extern const struct verb verb_run, verb_record, verb_replay, verb_info, verb_ps, verb_ls, verb_dump, verb_rm, verb_pack,
    verb_unpack, verb_walk, verb_why;

/* complain(), then the usage of `verb` (NULL: of reprise itself) on stderr; returns EXIT_OURS. */
int usage_error(const struct verb *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Looks a command up as execvp does. 0: `path` can be tried; otherwise the exit status, and the user was told why. */
int find_command(const char *name, char *path, unsigned long cap);

#endif
