/* reprise info: what a recording is, and how large. */
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/checkpoint_facts.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/print.h"
#include "log/summary.h"

static const char info_usage[] =
    "usage: reprise info [--json] [DIR|NAME]\n"
    "\n"
    "Says what a recording (default: the latest) holds: command, time, status, processes, events, sizes.\n"
    "\n"
    "  --json   the same facts as one JSON object\n"
    "  --help   this text\n"
    "\n"
    "The log's size is split into input (results of system calls, signals, memory at the start) and interleaving\n"
    "(which thread ran when: turns, preemptions, pages handed over, and thread and tick of every event if a\n"
    "process has several threads). Kept files are shared by all recordings and counted apart. Checkpoints: how many\n"
    "were taken and how many are left since old ones were merged, their space, and the interval that was kept, on\n"
    "average, by the process with most of them.\n";

/* What info says; both ways of printing use it. */
struct facts {
    uint64_t began, ended; /* ns; 0: unknown */
    int64_t status;
    bool has_status;
    uint64_t instructions; /* 0: unknown */
    char host[256], kernel[256], recorder[32], version[32], directory[4096];
    const char *state; /* "complete", ... */
    char stopped[32];  /* why recording stopped before the program did */
    char cut[256];
};

static void find_status(struct facts *f, const struct recording *r, const struct summary *s) {
    if (json_is(r->end)) f->has_status = json_member_i64(r->end, "status", &f->status);
    if (f->has_status) return;
    for (const struct stream_facts *t = s->n_streams ? &s->streams[0] : NULL; t;) {
        f->has_status = t->end == STREAM_EXITED;
        f->status = t->status;
        const struct stream_facts *next = t->end == STREAM_EXEC ? summary_stream(s, t->next) : NULL;
        t = next && next->number > t->number ? next : NULL;
    }
}

/* From `reprise replay -a --count`; 0: there was none. */
static uint64_t kept_count(const struct recording *r) {
    char path[PATH_MAX];
    uint64_t n = 0;
    if (!r->dir) return 0;
    snprintf(path, sizeof path, "%s/" COUNT_FILE, r->dir);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    if (fscanf(file, "%lu", &n) != 1) n = 0;
    fclose(file);
    return n;
}

static void find_facts(struct facts *f, const struct recording *r, const struct summary *s) {
    json_member_u64(r->header, "began_ns", &f->began);
    json_member_string(r->header, "host", f->host, sizeof f->host);
    json_member_string(r->header, "kernel", f->kernel, sizeof f->kernel);
    json_member_string(r->header, "recorder", f->recorder, sizeof f->recorder);
    json_member_string(r->header, "reprise", f->version, sizeof f->version);
    json_member_string(r->header, "directory", f->directory, sizeof f->directory);
    if (json_is(r->end)) {
        json_member_u64(r->end, "ended_ns", &f->ended);
        json_member_u64(r->end, "instructions", &f->instructions);
    }
    if (!f->instructions) f->instructions = kept_count(r);
    find_status(f, r, s);
    recording_cut_text(r, f->cut, sizeof f->cut);
    bool is_stopped = recording_was_stopped(r, f->stopped, sizeof f->stopped);
    f->state = recording_is_damaged(r) ? "damaged"
               : is_stopped            ? "stopped"
               : r->end_text           ? "complete"
               : r->under_way          ? "under way"
                                       : "cut off";
}

static void line(const char *name, const char *text) {
    if (!text[0]) return;
    printf("%-14s ", name);
    print_text(stdout, text, strlen(text));
    putchar('\n');
}

#define LINE_MOST 100
#define INDENT 15

/* What a processor needs for a replay. */
static void print_cpu(const struct recording *r) {
    struct json cpu, flags;
    char model[128], word[64];
    if (!json_member(r->header, "cpu", &cpu)) return;
    if (json_member_string(cpu, "model", model, sizeof model)) line("processor", model);
    if (!json_member(cpu, "flags", &flags)) return;
    int at = printf("%-*s", INDENT - 1, "needs");
    for (struct json flag = json_first(flags); json_is(flag); flag = json_next(flag)) {
        if (json_string(flag, word, sizeof word) <= 0) continue;
        if (at + 1 + (int)strlen(word) > LINE_MOST) at = printf("\n%*s", INDENT - 1, "") - 1;
        putchar(' ');
        print_text(stdout, word, strlen(word));
        at += 1 + (int)strlen(word);
    }
    putchar('\n');
}

/* Bits of `bytes` per thousand of `n`. */
static double per_kilo(uint64_t bytes, uint64_t n) { return n ? 8000.0 * (double)bytes / (double)n : 0; }

static void print_share(const char *name, uint64_t stored, uint64_t raw, const struct facts *f,
                        const struct summary *s) {
    char a[16], b[16];
    printf("  %-12s %9s stored, %9s raw", name, size_text(stored, a), size_text(raw, b));
    if (f->instructions)
        printf(", %.4g bits per kilo-instruction", per_kilo(stored, f->instructions));
    else if (s->ticks)
        printf(", %.4g bits per kilo-tick", per_kilo(stored, s->ticks));
    putchar('\n');
}

static void print_sizes(const struct facts *f, const struct recording *r, const struct summary *s) {
    char a[16];
    line("log", size_text(r->size, a));
    print_share("events", s->stored_len, s->raw_len, f, s);
    print_share("input", s->stored_len - s->interleaving_stored, s->raw_len - s->interleaving_raw, f, s);
    print_share("interleaving", s->interleaving_stored, s->interleaving_raw, f, s);
    printf("%-14s %zu, %s\n", "kept files", s->objects, size_text(s->objects_size, a));
    struct checkpoint_facts c = checkpoint_facts_of(r);
    if (!c.taken) return;
    printf("%-14s %lu taken, %lu kept, %s", "checkpoints", c.taken, c.kept, size_text(c.bytes, a));
    if (c.interval_ns) printf(", one every %.3g s", (double)c.interval_ns / 1e9);
    putchar('\n');
}

static void print_plain(const struct facts *f, const struct recording *r, const struct summary *s) {
    char text[48];
    if (r->dir) line("recording", r->dir);
    printf("%-14s ", "command");
    print_command(stdout, r);
    putchar('\n');
    line("directory", f->directory);
    line("began", date_text(f->began, text));
    if (f->began && f->ended >= f->began) line("lasted", duration_text(f->ended - f->began, text));
    line("host", f->host);
    line("kernel", f->kernel);
    print_cpu(r);
    line("recorder", f->recorder);
    char state[64];
    snprintf(state, sizeof state, f->stopped[0] ? "%s (%s)" : "%s", f->state, f->stopped);
    line("state", state);
    if (f->has_status) line("status", status_text((int)f->status, text));
    printf("%-14s %lu\n%-14s %lu\n%-14s %lu\n%-14s %lu\n", "processes", s->processes, "threads", s->threads, "events",
           s->events, "ticks", s->ticks);
    if (f->instructions) printf("%-14s %lu\n", "instructions", f->instructions);
    print_sizes(f, r, s);
}

static void member_string(const char *name, const char *text) {
    printf(", \"%s\": ", name);
    json_write_string(stdout, text, strlen(text));
}

static void print_json(const struct facts *f, const struct recording *r, const struct summary *s) {
    printf("{\"format\": %d", LOG_VERSION);
    if (r->dir) member_string("recording", r->dir);
    printf(", \"header\": %s, \"end\": %s", r->header_text, r->end_text ? r->end_text : "null");
    member_string("state", f->state);
    member_string("damage", f->cut);
    if (f->has_status) printf(", \"status\": %ld", f->status);
    printf(", \"log\": {\"size\": %lu, \"valid\": %lu, \"frames\": %zu}", r->size, r->cut, r->n_frames);
    printf(", \"processes\": %lu, \"streams\": %zu, \"threads\": %lu, \"events\": %lu, \"ticks\": %lu", s->processes,
           s->n_streams, s->threads, s->events, s->ticks);
    printf(", \"kinds\": {");
    const char *between = "";
    for (unsigned k = 0; k < 32; k++) {
        if (!event_kind_name(k) || !s->kinds[k]) continue;
        printf("%s\"%s\": %lu", between, event_kind_name(k), s->kinds[k]);
        between = ", ";
    }
    printf("}, \"bytes\": {\"raw\": %lu, \"stored\": %lu, \"interleaving_raw\": %lu, \"interleaving_stored\": %lu}",
           s->raw_len, s->stored_len, s->interleaving_raw, s->interleaving_stored);
    uint64_t per = f->instructions ? f->instructions : s->ticks;
    if (per)
        printf(", \"bits_per_kilo_%s\": {\"all\": %.6g, \"input\": %.6g, \"interleaving\": %.6g}",
               f->instructions ? "instruction" : "tick", per_kilo(s->stored_len, per),
               per_kilo(s->stored_len - s->interleaving_stored, per), per_kilo(s->interleaving_stored, per));
    printf(", \"objects\": {\"count\": %zu, \"size\": %lu}", s->objects, s->objects_size);
    struct checkpoint_facts c = checkpoint_facts_of(r);
    printf(", \"checkpoints\": {\"taken\": %lu, \"kept\": %lu, \"size\": %lu, \"unconsolidated\": %lu, "
           "\"interval_ns\": %lu}}\n",
           c.taken, c.kept, c.bytes, c.unconsolidated, c.interval_ns);
}

#define DAMAGE_LINES 10

/* Damage inside of streams, which the checksums cannot tell. */
static bool say_damage(const struct summary *s) {
    size_t damaged = 0;
    for (size_t i = 0; i < s->n_streams; i++)
        if (s->streams[i].damage[0] && ++damaged <= DAMAGE_LINES) complain("%s", s->streams[i].damage);
    if (damaged > DAMAGE_LINES) complain("%zu more streams are damaged", damaged - DAMAGE_LINES);
    return damaged;
}

static int info_main(int argc, char **argv) {
    static const struct option options[] = {{"json", 0, NULL, 'j'}, {"help", 0, NULL, 'h'}, {0}};
    bool json = false;
    for (int c; (c = verb_option(&verb_info, argc, argv, "h", options)) != -1;) {
        if (c == VERB_DONE || c == VERB_WRONG) return c == VERB_DONE ? 0 : EXIT_OURS;
        json = true;
    }
    if (argc - optind > 1) return usage_error(&verb_info, "one recording at a time");

    struct recording *r = open_recording(argv[optind]);
    if (!r) return EXIT_OURS;
    recording_verify(r);
    struct summary *s = summary_of(r);
    struct facts *f = calloc(1, sizeof *f);
    int status = EXIT_OURS;
    if (s && f) {
        find_facts(f, r, s);
        (json ? print_json : print_plain)(f, r, s);
        status = printed();
        if (recording_is_damaged(r)) status = EXIT_OURS;
        say_if_cut(r);
        if (say_damage(s)) status = EXIT_OURS;
    } else {
        complain("out of memory");
    }
    free(f);
    summary_free(s);
    recording_close(r);
    return status;
}

const struct verb verb_info = {"info", "say what a recording holds and how large it is", info_usage, info_main};
