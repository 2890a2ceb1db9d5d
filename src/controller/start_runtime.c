/* Orders to reprise-rt. On the measured path of every start: few system calls, nothing allocated that is not needed. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/complain.h"
#include "controller/start_runtime.h"

int add_option(struct options *o, const char *key_value) {
    size_t n = strlen(key_value);
    if (o->len + 1 + n + 1 > sizeof o->text) return 0;
    if (o->len) o->text[o->len++] = ',';
    memcpy(o->text + o->len, key_value, n + 1);
    o->len += n;
    return 1;
}

int add_optionf(struct options *o, const char *format, ...) {
    char text[PATH_MAX + 64];
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return n >= 0 && (size_t)n < sizeof text && add_option(o, text);
}

int is_key_value(const char *s) {
    const char *eq = strchr(s, '=');
    return eq && eq != s;
}

/* A path with a comma cannot be said in the options, so no cache then. */
unsigned long add_cache_options(struct options *o, int use_cache, const unsigned long *given) {
    char key_value[PATH_MAX + 16] = "cachedir=";
    char *dir = key_value + strlen(key_value);
    int kept = use_cache && cache_dir(dir, PATH_MAX) && !strchr(dir, ',');
    add_option(o, kept ? "cache=1" : "cache=0");
    if (kept) add_option(o, key_value);
    unsigned long seed = given ? *given : layout_seed(kept ? dir : NULL);
    add_optionf(o, "seed=%lx", seed);
    return seed;
}

int start_runtime(const char *path, const struct options *o, int argc, char **argv) {
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
