/* What the verbs of the command line share. */
#ifndef REPRISE_CLI_H
#define REPRISE_CLI_H

/* Exit statuses of our own, as of env(1) and timeout(1); every other status is the program's. */
enum { EXIT_OURS = 125, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

struct verb {
    const char *name;
    const char *summary;                /* one line, for `reprise help`; NULL: not shown */
    const char *usage;                  /* the whole text of `reprise VERB --help` */
    int (*main)(int argc, char **argv); /* argv[0] is the verb; returns the exit status */
};

extern const struct verb verb_run, verb_record, verb_replay, verb_info, verb_ps, verb_ls, verb_dump, verb_rm, verb_pack,
    verb_unpack, verb_walk, verb_why;

/* One line on stderr, "reprise: " in front. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* complain(), then the usage of `verb` (NULL: of reprise itself) on stderr; returns EXIT_OURS. */
int usage_error(const struct verb *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Looks a command up as execvp does. 0: `path` can be tried; otherwise the exit status, and the user was told why. */
int find_command(const char *name, char *path, unsigned long cap);

/* Where translations are kept between runs; makes the directory (0700). False: do without, nobody needs to know. */
int cache_dir(char *path, unsigned long cap);

/* Decides where libraries go: the user's own number, kept in the cache directory so that kept translations fit; a random one
 * without a directory (dir NULL). */
unsigned long layout_seed(const char *dir);

/* Becomes reprise-rt. Returns only on failure: the exit status, and the user was told why. */
int exec_runtime(char *const argv[]);

#endif
