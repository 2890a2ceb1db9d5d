/* reprise: picks the verb. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static const struct verb *const verbs[] = {&verb_run,  &verb_record, &verb_replay, &verb_info,   &verb_ps,  &verb_ls,
                                           &verb_dump, &verb_rm,     &verb_pack,   &verb_unpack, &verb_why, &verb_walk};
#define VERBS (sizeof verbs / sizeof *verbs)

static void print_usage(FILE *to) {
    fputs("usage: reprise VERB [OPTIONS] [--] CMD...\n\nVerbs:\n", to);
    for (size_t i = 0; i < VERBS; i++)
        if (verbs[i]->summary) fprintf(to, "  %-8s %s\n", verbs[i]->name, verbs[i]->summary);
    fputs("  help     this text; `reprise help VERB` or `reprise VERB --help` says more about one verb\n"
          "\n"
          "Options:\n"
          "  --help, --version\n"
          "\n"
          "Exit status: the program's own (and death by the same signal); 125 if Reprise itself failed,\n"
          "126 if CMD cannot be executed, 127 if it was not found.\n",
          to);
}

int usage_error(const struct verb *verb, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    complain_v(format, ap);
    va_end(ap);
    if (verb)
        fputs(verb->usage, stderr);
    else
        print_usage(stderr);
    return EXIT_OURS;
}

static const struct verb *find_verb(const char *name) {
    for (size_t i = 0; i < VERBS; i++)
        if (strcmp(verbs[i]->name, name) == 0) return verbs[i];
    return NULL;
}

/* Help that could not be written (`reprise help >/dev/full`) did not help. */
static int written(void) { return fflush(stdout) == 0 && !ferror(stdout) ? 0 : EXIT_OURS; }

static int help(const char *about) {
    if (!about) {
        print_usage(stdout);
        return written();
    }
    const struct verb *verb = find_verb(about);
    if (!verb) return usage_error(NULL, "no verb '%s'", about);
    fputs(verb->usage, stdout);
    return written();
}

int main(int argc, char **argv) {
    if (argc < 2) return usage_error(NULL, "what shall I do?");
    const char *first = argv[1];
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) return help(NULL);
    if (strcmp(first, "help") == 0) return help(argv[2]);
    if (strcmp(first, "--version") == 0) {
        puts("reprise " REPRISE_VERSION);
        return written();
    }
    if (first[0] == '-') return usage_error(NULL, "unknown option '%s'", first);
    const struct verb *verb = find_verb(first);
    if (!verb) return usage_error(NULL, "no verb '%s'", first);
    return verb->main(argc - 1, argv + 1);
}
