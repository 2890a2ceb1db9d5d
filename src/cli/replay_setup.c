#include "cli/replay_setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/print.h"
#include "controller/cpu.h"
#include "log/place.h"

/* Which of the recording's files `store` lacks: NULL for none. */
static const struct object_ref *first_missing(const struct recording *r, const char *store) {
    char base[PATH_MAX + 16], path[PATH_MAX + 64];
    snprintf(base, sizeof base, "%.*s", PATH_MAX, store);
    char *slash = strrchr(base, '/'); /* place_object() wants BASE, which has the store below it */
    if (!slash) return r->n_objects ? r->objects : NULL;
    *slash = '\0';
    for (size_t i = 0; i < r->n_objects; i++)
        if (!place_object(base, r->objects[i].object.name, path, sizeof path)) return &r->objects[i];
    return NULL;
}

/* The store that has all the files: BASE's, the one beside the recording, the one it was recorded with. */
static bool find_store(const struct recording *r, char *store, size_t cap) {
    char places[3][PATH_MAX + 16], base[PATH_MAX], why[WHY_MAX];
    int n = 0;
    if (place_base(base, sizeof base, why)) snprintf(places[n++], sizeof *places, "%s/store", base);
    if (r->dir) snprintf(places[n++], sizeof *places, "%s/../store", r->dir);
    if (json_member_string(r->header, "store", base, sizeof base) && base[0] == '/')
        snprintf(places[n++], sizeof *places, "%s", base);
    const struct object_ref *missing = NULL;
    for (int i = 0; i < n; i++) {
        const struct object_ref *m = first_missing(r, places[i]);
        if (!m && !strchr(places[i], ',') && strlen(places[i]) < cap) {
            strcpy(store, places[i]);
            return true;
        }
        if (m && !missing) missing = m;
    }
    if (missing)
        complain("a file that the recording needs is not in %s any more: what was %s", places[0], missing->path);
    else
        complain("the files that the recording needs are in a directory whose name has a comma: it must be renamed");
    return false;
}

/* What the program was shown decides what is in frames of signals, too. */
static void add_cpu_option(struct options *o, const struct recording *r) {
    struct json cpu;
    char level[8] = "";
    if (json_member(r->header, "cpu", &cpu)) json_member_string(cpu, "level", level, sizeof level);
    if (strcmp(level, "v2") == 0 || strcmp(level, "v3") == 0) add_optionf(o, "cpu=%s", level);
}

static bool check_cpu(const struct recording *r) {
    struct json cpu, flags, word;
    struct cpu here;
    char wanted[4096] = "", missing[1024], name[64], vendor[64] = "";
    if (!json_member(r->header, "cpu", &cpu)) return true;
    cpu_read(&here, CPU_ALL);
    if (json_member(cpu, "flags", &flags))
        for (word = json_first(flags); json_is(word); word = json_next(word)) {
            size_t len = strlen(wanted);
            if (json_string(word, name, sizeof name) > 0)
                snprintf(wanted + len, sizeof wanted - len, "%s%s", len ? " " : "", name);
        }
    if (!cpu_has_all(here.flags, wanted, missing, sizeof missing)) {
        complain("this processor lacks what the recorded one had: %s (record with --cpu v2 or v3 to avoid that)",
                 missing);
        return false;
    }
    json_member_string(cpu, "vendor", vendor, sizeof vendor);
    if (vendor[0] && strcmp(vendor, here.vendor) != 0)
        complain("warning: recorded on a processor of %s: some floating-point results may differ here", vendor);
    return true;
}

bool replay_set_up(struct replay_setup *s, const char *name, bool cache, bool verify, const struct options *debug) {
    char seed_text[32] = "";
    *s = (struct replay_setup){.recording = open_recording(name)};
    if (!s->recording) return false;
    if (recording_is_damaged(s->recording)) say_if_cut(s->recording);
    if (!check_cpu(s->recording) || !find_store(s->recording, s->store, sizeof s->store)) return false;
    json_member_string(s->recording->header, "seed", seed_text, sizeof seed_text);
    unsigned long seed = strtoul(seed_text, NULL, 16);
    add_cache_options(&s->options, cache, &seed);
    add_optionf(&s->options, "store=%s", s->store);
    add_cpu_option(&s->options, s->recording);
    if (verify) add_option(&s->options, "verify=1");
    if (debug && debug->len && !add_option(&s->options, debug->text)) {
        complain("--debug: too long");
        return false;
    }
    return true;
}
