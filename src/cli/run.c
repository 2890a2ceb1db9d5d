/* reprise run: hands a program to the runtime for standard execution. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "controller/start_runtime.h"

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
    add_cache_options(&o, cache, NULL);
    if (debug.len && !add_option(&o, debug.text)) return usage_error(&verb_run, "--debug: too long");
    return start_runtime(path, &o, argc - i, argv + i);
}

const struct verb verb_run = {"run", "run a program under the engine, without recording", run_usage, run_main};
