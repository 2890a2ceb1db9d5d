/* Orders to reprise-rt: its options, and entering it. Used by every verb that runs a program. */
#ifndef REPRISE_START_RUNTIME_H
#define REPRISE_START_RUNTIME_H

#include <limits.h>
#include <stddef.h>

/* The runtime's options: one argument, key=value,key=value. */
struct options {
    char text[3 * PATH_MAX];
    size_t len;
};

/* False: no room. */
int add_option(struct options *, const char *key_value);
int add_optionf(struct options *, const char *format, ...) __attribute__((format(printf, 2, 3)));
int is_key_value(const char *);

/* Cache and layout. `seed`: that of a recording; NULL: the user's own. Returns the seed that the runtime is told. */
unsigned long add_cache_options(struct options *, int use_cache, const unsigned long *seed);

/* Becomes the runtime, which runs `path` with `argv`. Returns only on failure: the exit status, and the user was told why. */
int start_runtime(const char *path, const struct options *, int argc, char **argv);

/* Where translations are kept between runs; makes the directory (0700). False: do without, nobody needs to know. */
int cache_dir(char *path, unsigned long cap);

/* Decides where libraries go: the user's own number, kept in the cache directory so that kept translations fit; a random one
 * without a directory (dir NULL). */
unsigned long layout_seed(const char *dir);

/* Becomes reprise-rt. Returns only on failure: the exit status, and the user was told why. */
int exec_runtime(char *const argv[]);

#endif
