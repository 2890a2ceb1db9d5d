/* reprise dump: every event of a recording, or every frame, as text. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/dump_checkpoints.h"
#include "cli/options.h"
#include "cli/print.h"
#include "log/event_text.h"

static const char dump_usage[] =
    "usage: reprise dump [OPTIONS] [DIR|NAME]\n"
    "\n"
    "Prints the events of a recording (default: the latest), stream by stream, one a line: number in its stream,\n"
    "thread, ticks, kind, and what it says.\n"
    "\n"
    "  --stream N   only this stream\n"
    "  --thread N   only this thread\n"
    "  --from N     no events before this number; --to N: none behind it\n"
    "  --raw        the frames of the log instead: offset, kind, stream, position, lengths, checksums\n"
    "  --checkpoints   the checkpoints instead: numbers, level, place, pages and blocks, and a hash of all that each\n"
    "               tells of memory\n"
    "  --json       one JSON object a line (not for checkpoints)\n"
    "  --help       this text\n";

struct wanted {
    uint64_t stream, thread, from, to;
    bool one_stream, one_thread, raw, checkpoints, json;
};

static void print_event(const struct wanted *w, uint64_t stream, const struct event_reader *at, const struct event *e) {
    if (w->json) {
        printf("{\"stream\": %lu, \"event\": %lu, \"position\": %lu, \"kind\": \"%s\", \"flags\": %u, \"code\": %u, "
               "\"size\": %u, "
               "\"thread\": %u, \"regs\": %u, \"ticks\": %lu",
               stream, at->number, at->position, event_kind_name(e->kind), e->flags, e->code, e->size, e->thread,
               e->regs, e->ticks);
        event_print_json(stdout, e);
        puts("}");
    } else {
        printf("%3lu %7lu %3u %12lu %08x %-8s ", stream, at->number, e->thread, e->ticks, e->regs,
               event_kind_name(e->kind));
        event_print(stdout, e);
        putchar('\n');
    }
}

/* False: the stream is damaged, and the user was told. */
static bool dump_stream(const struct wanted *w, const struct recording *r, const struct stream_ref *s) {
    struct event_reader reader;
    const struct event *e;
    enum read_result got;
    if (!event_reader_open(&reader, r, s)) {
        complain("out of memory");
        return false;
    }
    while ((got = event_reader_next(&reader, &e)) == READ_GOT && reader.number <= w->to && !ferror(stdout))
        if (reader.number >= w->from && (!w->one_thread || e->thread == w->thread))
            print_event(w, s->number, &reader, e);
    if (got == READ_DAMAGED) complain("%s", reader.why);
    event_reader_close(&reader);
    return got != READ_DAMAGED;
}

static int dump_events(const struct wanted *w, const struct recording *r) {
    bool fine = true;
    if (w->one_stream && !recording_stream(r, w->stream)) {
        complain("no stream %lu in this recording; `reprise ps` lists them", w->stream);
        return EXIT_OURS;
    }
    if (!w->json) puts("str   event thr        ticks     regs kind     what");
    for (size_t i = 0; i < r->n_streams; i++)
        if (!w->one_stream || r->streams[i].number == w->stream) fine = dump_stream(w, r, &r->streams[i]) && fine;
    int status = printed();
    return fine ? status : EXIT_OURS;
}

/* ---- frames ---- */

static const char *frame_name(unsigned kind) {
    static const char *const names[] = {
        [FRAME_HEADER] = "HEADER", [FRAME_EVENTS] = "EVENTS", [FRAME_OBJECT] = "OBJECT", [FRAME_END] = "END"};
    return kind < sizeof names / sizeof *names && names[kind] ? names[kind] : "?";
}

static void print_frame(const struct wanted *w, const struct frame_ref *f) {
    const struct frame_head *h = &f->head;
    const char *compression = h->compression == FRAME_ZSTD ? "zstd" : "none";
    if (w->json)
        printf("{\"offset\": %lu, \"kind\": \"%s\", \"stream\": %lu, \"position\": %lu, \"compression\": \"%s\", "
               "\"raw_len\": %u, \"len\": %u, \"payload_hash\": \"%016lx\", \"head_hash\": \"%016lx\"}\n",
               f->offset, frame_name(h->kind), h->stream, h->position, compression, h->raw_len, h->len, h->payload_hash,
               h->head_hash);
    else
        printf("%12lu %-6s %4lu %12lu %-4s %8u %8u %016lx %016lx\n", f->offset, frame_name(h->kind), h->stream,
               h->position, compression, h->raw_len, h->len, h->payload_hash, h->head_hash);
}

static int dump_frames(const struct wanted *w, const struct recording *r) {
    if (!w->json) puts("      offset kind    str     position comp      raw   stored payload hash     head hash");
    for (size_t i = 0; i < r->n_frames && !ferror(stdout); i++) {
        const struct frame_head *h = &r->frames[i].head;
        if (!w->one_stream || (h->kind == FRAME_EVENTS && h->stream == w->stream)) print_frame(w, &r->frames[i]);
    }
    if (w->json)
        printf("{\"valid\": %lu, \"size\": %lu, \"fault\": \"%s\"}\n", r->cut, r->size,
               r->cut < r->size ? frame_fault_text(r->fault) : "");
    return printed();
}

static int parse(struct wanted *w, int argc, char **argv) {
    static const struct option options[] = {
        {"stream", 1, NULL, 's'},      {"thread", 1, NULL, 't'}, {"from", 1, NULL, 'f'},
        {"to", 1, NULL, 'T'},          {"raw", 0, NULL, 'r'},    {"json", 0, NULL, 'j'},
        {"checkpoints", 0, NULL, 'c'}, {"help", 0, NULL, 'h'},   {0}};
    *w = (struct wanted){.to = UINT64_MAX};
    for (int c; (c = verb_option(&verb_dump, argc, argv, ":h", options)) != -1;) {
        uint64_t *number = c == 's'   ? &w->stream
                           : c == 't' ? &w->thread
                           : c == 'f' ? &w->from
                           : c == 'T' ? &w->to
                                      : NULL;
        if (c == VERB_DONE || c == VERB_WRONG) return c;
        if (number && !parse_u64(optarg, number)) {
            usage_error(&verb_dump, "'%s' is no number", optarg);
            return VERB_WRONG;
        }
        w->one_stream |= c == 's';
        w->one_thread |= c == 't';
        w->raw |= c == 'r';
        w->checkpoints |= c == 'c';
        w->json |= c == 'j';
    }
    return 0;
}

static int dump_main(int argc, char **argv) {
    struct wanted w;
    int c = parse(&w, argc, argv);
    if (c) return c == VERB_DONE ? 0 : EXIT_OURS;
    if (argc - optind > 1) return usage_error(&verb_dump, "one recording at a time");
    struct recording *r = open_recording(argv[optind]);
    if (!r) return EXIT_OURS;
    recording_verify(r);
    int status;
    if (w.checkpoints)
        status = dump_checkpoints(r->dir) ? printed() : EXIT_OURS;
    else
        status = w.raw ? dump_frames(&w, r) : dump_events(&w, r);
    say_if_cut(r);
    if (recording_is_damaged(r)) status = EXIT_OURS;
    recording_close(r);
    return status;
}

const struct verb verb_dump = {"dump", "print the events of a recording", dump_usage, dump_main};
