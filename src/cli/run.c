/* reprise run: hands a program to the runtime for standard execution.
 * On the measured path of every start: few system calls, nothing allocated that is not needed. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

static const char run_usage[] =
    "usage: reprise run [--no-cache] [--] CMD [ARGS...]\n"
    "\n"
    "Runs CMD under the engine, without recording. Output, exit status and signals are the program's.\n"
    "\n"
    "  --no-cache   neither use translations kept from earlier runs nor keep any\n"
    "               (they live in $XDG_CACHE_HOME/reprise, else ~/.cache/reprise)\n"
    "  --help       this text\n"
    "\n"
    "REPRISE_RT names another reprise-rt than the one installed beside this command.\n";

/* The runtime's options: one argument, key=value,key=value. */
struct options {
    char text[2 * PATH_MAX];
    size_t len;
};

static int add_option(struct options *o, const char *key_value) {
    size_t n = strlen(key_value);
    if (o->len + 1 + n + 1 > sizeof o->text) return 0;
    if (o->len) o->text[o->len++] = ',';
    memcpy(o->text + o->len, key_value, n + 1);
    o->len += n;
    return 1;
}

static int is_key_value(const char *s) {
    const char *eq = strchr(s, '=');
    return eq && eq != s;
}

/* Cache options. A path with a comma cannot be said in the options, so no cache then. */
static void add_cache(struct options *o, int wanted) {
    char key_value[PATH_MAX + 16] = "cachedir=";
    char *dir = key_value + strlen(key_value);
    int kept = wanted && cache_dir(dir, PATH_MAX) && !strchr(dir, ',');
    add_option(o, kept ? "cache=1" : "cache=0");
    if (kept) add_option(o, key_value);
    char seed[32];
    snprintf(seed, sizeof seed, "seed=%lx", layout_seed(kept ? dir : NULL));
    add_option(o, seed);
}

static int start(const char *path, const struct options *o, int argc, char **argv) {
    char **rt = malloc(((size_t)argc + 6) * sizeof *rt);
    if (!rt) {
        complain("out of memory");
        return EXIT_OURS;
    }
    char **p = rt;
    *p++ = "reprise-rt";
    *p++ = "--start";
    *p++ = (char *)o->text;
    *p++ = (char *)path;
    *p++ = "--";
    memcpy(p, argv, ((size_t)argc + 1) * sizeof *argv);
    return exec_runtime(rt);
}

static int run_main(int argc, char **argv) {
    struct options debug = {.len = 0}, o = {.len = 0};
    int cache = 1, i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        const char *a = argv[i];
        if (strcmp(a, "--") == 0) {
            i++;
            break;
        } else if (strcmp(a, "--help") == 0 || strcmp(a, "-h") == 0) {
            fputs(run_usage, stdout);
            return fflush(stdout) == 0 ? 0 : EXIT_OURS;
        } else if (strcmp(a, "--no-cache") == 0) {
            cache = 0;
        } else if (strcmp(a, "--debug") == 0) { /* for ourselves: goes to the runtime as it is */
            if (i + 1 >= argc || !is_key_value(argv[i + 1])) return usage_error(&verb_run, "--debug needs KEY=VALUE");
            if (!add_option(&debug, argv[++i])) return usage_error(&verb_run, "--debug: too long");
        } else {
            return usage_error(&verb_run, "unknown option '%s'", a);
        }
    }
    if (i >= argc) return usage_error(&verb_run, "no command given");

    char path[PATH_MAX];
    int status = find_command(argv[i], path, sizeof path);
    if (status) return status;
    add_cache(&o, cache);
    if (debug.len && !add_option(&o, debug.text)) return usage_error(&verb_run, "--debug: too long");
    return start(path, &o, argc - i, argv + i);
}

const struct verb verb_run = {"run", "run a program under the engine, without recording", run_usage, run_main};
