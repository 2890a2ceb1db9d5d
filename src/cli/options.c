/* Options of the verbs that read recordings, see options.h. */
#include "cli/options.h"

#include <stdio.h>

#include "cli/print.h"

int verb_option(const struct verb *verb, int argc, char **argv, const char *letters, const struct option *options) {
    opterr = 0;
    const char *looked_at = optind < argc ? argv[optind] : "";
    int c = getopt_long(argc, argv, letters, options, NULL);
    if (c == 'h') {
        fputs(verb->usage, stdout);
        return printed() == 0 ? VERB_DONE : VERB_WRONG;
    }
    if (c != '?' && c != ':') return c;
    looked_at = optind > 0 && optind <= argc && argv[optind - 1][0] == '-' ? argv[optind - 1] : looked_at;
    usage_error(verb, c == ':' ? "%s needs a value" : "unknown option '%s'", looked_at);
    return VERB_WRONG;
}
