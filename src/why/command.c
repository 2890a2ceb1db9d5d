/* `monitor why` of gdb: what to look for, and the answer as text. */
#include "why/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "why/why.h"

static const char usage[] = "why ADDRESS LEN | $REGISTER | VARIABLE [-n N]\n";

/* "PLACE [-n N]", or the option first. False: neither. */
static bool parse(struct target *t, const char *text, struct place *p, unsigned *stores) {
    char words[256], place[256] = "", *rest = words;
    snprintf(words, sizeof words, "%s", text);
    *stores = 1;
    for (char *word; (word = strtok_r(rest, " ", &rest));) {
        if (strcmp(word, "-n") == 0) {
            char *n = strtok_r(rest, " ", &rest), *end = n;
            *stores = n ? (unsigned)strtoul(n, &end, 10) : 0;
            if (!*stores || *end || *stores > 10000) return false;
        } else {
            size_t at = strlen(place);
            snprintf(place + at, sizeof place - at, "%s%s", at ? ":" : "", word);
        }
    }
    return place[0] && why_parse_place(t, place, p);
}

void why_command(struct target *t, const struct recording *r, uint64_t stream, uint64_t program, const char *text,
                 char *out, size_t cap) {
    struct why_question q = {.target = t, .recording = r, .stream = stream, .program = program};
    struct why w;
    FILE *to = fmemopen(out, cap, "w");
    if (!to) return;
    if (!parse(t, text, &q.place, &q.stores))
        fputs(usage, to);
    else if (!why_ask(&w, &q))
        fputs("The present place cannot be left.\n", to);
    else {
        why_print(&w, to);
        why_free(&w);
    }
    fclose(to);
}
