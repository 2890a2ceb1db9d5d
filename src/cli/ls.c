/* reprise ls: the recordings there are. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ckpt/store.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/print.h"

static const char ls_usage[] =
    "usage: reprise ls [--json]\n"
    "\n"
    "Lists the recordings in $REPRISE_DIR (else ~/.local/share/reprise), the oldest first, and those elsewhere that\n"
    "use its store. Sizes are those of logs and checkpoints; kept files are shared.\n"
    "\n"
    "  --json   an array of objects\n"
    "  --help   this text\n";

struct row {
    const struct place_entry *entry;
    struct recording *recording; /* NULL: cannot be opened */
    uint64_t began;
    char why[WHY_MAX];
};

static int by_time(const void *a, const void *b) {
    const struct row *x = *(struct row *const *)a, *y = *(struct row *const *)b;
    return x->began < y->began ? -1 : x->began > y->began ? 1 : strcmp(x->entry->path, y->entry->path);
}

static const char *end_text(const struct recording *r, char text[48]) {
    int64_t status;
    char reason[24];
    if (recording_was_stopped(r, reason, sizeof reason)) {
        snprintf(text, 48, "stopped (%s)", reason);
        return text;
    }
    return json_member_i64(r->end, "status", &status) ? status_text((int)status, text) : "complete";
}

static const char *state_of(const struct row *row, char text[48]) {
    const struct recording *r = row->recording;
    if (!r) return "unusable";
    if (recording_is_damaged(r)) return "damaged";
    if (json_is(r->end)) return end_text(r, text);
    return r->under_way ? "under way" : "cut off";
}

static void print_row(const struct row *row) {
    char date[24], size[16], text[48];
    printf("%-19s  %9s  %-18s  ", row->began ? date_text(row->began, date) : "",
           row->recording ? size_text(row->recording->size + ckpt_disk_size(row->entry->path), size) : "",
           state_of(row, text));
    print_text(stdout, row->entry->name, strlen(row->entry->name));
    fputs("  ", stdout);
    if (row->recording) print_command(stdout, row->recording);
    putchar('\n');
}

static void print_row_json(const struct row *row) {
    char text[48];
    fputs("{\"name\": ", stdout);
    json_write_string(stdout, row->entry->name, strlen(row->entry->name));
    fputs(", \"path\": ", stdout);
    json_write_string(stdout, row->entry->path, strlen(row->entry->path));
    printf(", \"state\": \"%s\"", state_of(row, text));
    if (row->recording)
        printf(", \"size\": %lu, \"checkpoints_size\": %lu, \"header\": %s, \"end\": %s", row->recording->size,
               ckpt_disk_size(row->entry->path), row->recording->header_text,
               row->recording->end_text ? row->recording->end_text : "null");
    else {
        fputs(", \"why\": ", stdout);
        json_write_string(stdout, row->why, strlen(row->why));
    }
    putchar('}');
}

static struct row *new_row(const struct place_entry *e) {
    struct row *row = calloc(1, sizeof *row);
    if (!row) return NULL;
    row->entry = e;
    row->recording = recording_open(e->path, row->why);
    if (!row->recording) return row;
    json_member_u64(row->recording->header, "began_ns", &row->began);
    close(row->recording->fd); /* there may be more recordings than descriptors */
    row->recording->fd = -1;
    return row;
}

static void print_rows(struct row **rows, size_t n, bool json) {
    qsort(rows, n, sizeof *rows, by_time);
    if (json) putchar('[');
    for (size_t i = 0; i < n; i++) {
        if (json && i) fputs(",\n ", stdout);
        (json ? print_row_json : print_row)(rows[i]);
    }
    if (json) puts("]");
}

static int ls_main(int argc, char **argv) {
    static const struct option options[] = {{"json", 0, NULL, 'j'}, {"help", 0, NULL, 'h'}, {0}};
    bool json = false;
    for (int c; (c = verb_option(&verb_ls, argc, argv, "h", options)) != -1;) {
        if (c == VERB_DONE || c == VERB_WRONG) return c == VERB_DONE ? 0 : EXIT_OURS;
        json = true;
    }
    if (optind < argc)
        return usage_error(&verb_ls, "ls takes no names; `reprise info %s` tells about one", argv[optind]);

    char base[PATH_MAX], why[WHY_MAX];
    struct place_entry *entries;
    size_t n, filled = 0;
    if (!place_base(base, sizeof base, why) || !place_list(base, &entries, &n, why)) {
        complain("%s", why);
        return EXIT_OURS;
    }
    struct row **rows = calloc(n + 1, sizeof *rows);
    while (rows && filled < n && (rows[filled] = new_row(&entries[filled]))) filled++;
    int status = EXIT_OURS;
    if (rows && filled == n) {
        print_rows(rows, n, json);
        status = printed();
    } else {
        complain("out of memory");
    }
    for (size_t i = 0; i < filled; i++) {
        recording_close(rows[i]->recording);
        free(rows[i]);
    }
    free(rows);
    place_list_free(entries, n);
    return status;
}

const struct verb verb_ls = {"ls", "list the recordings", ls_usage, ls_main};
