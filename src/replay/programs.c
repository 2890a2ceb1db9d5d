#include "replay/programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/print_text.h"

#define PRINT_MAX 20

/* How a stream begins. */
struct first {
    bool is_start; /* otherwise by fork */
    int pid;
    uint64_t parent;
    struct ev_start start; /* is_start */
};

static bool read_first(const struct recording *r, uint64_t number, struct first *f) {
    const struct stream_ref *s = recording_stream(r, number);
    struct event_reader reader;
    const struct event *e;
    if (!s || !event_reader_open(&reader, r, s)) return false;
    bool got = event_reader_next(&reader, &e) == READ_GOT && (e->kind == EV_START || e->kind == EV_FORKED);
    if (got && e->kind == EV_START) {
        f->start = *EVENT_PAYLOAD(e, ev_start);
        f->pid = (int)f->start.pid;
        f->parent = f->start.parent;
        f->is_start = true;
    } else if (got) {
        f->pid = (int)EVENT_PAYLOAD(e, ev_forked)->pid;
        f->parent = EVENT_PAYLOAD(e, ev_forked)->parent;
        f->is_start = false;
    }
    event_reader_close(&reader);
    return got;
}

/* A process that was forked runs its parent's program. */
static bool describe(const struct recording *r, uint64_t stream, struct program *p) {
    struct first f;
    p->stream = stream;
    for (uint64_t at = stream; read_first(r, at, &f); at = f.parent) {
        if (f.is_start) {
            snprintf(p->exe, sizeof p->exe, "%.*s", (int)sizeof f.start.exe - 1, f.start.exe);
            p->auxv_start = f.start.auxv_start;
            p->auxv_end = f.start.auxv_end;
            p->arg_start = f.start.arg_start;
            p->arg_end = f.start.arg_end;
            return true;
        }
        if (f.parent >= at) break;
    }
    return false;
}

static bool is_first(const struct recording *r, const struct first *f) {
    struct first before;
    return !f->is_start || !read_first(r, f->parent, &before) || before.pid != f->pid;
}

void programs_print(const struct recording *r, FILE *to) {
    struct first f;
    size_t n = 0;
    for (size_t i = 0; i < r->n_streams; i++) {
        struct program p = {0};
        uint64_t number = r->streams[i].number;
        if (!read_first(r, number, &f) || !is_first(r, &f) || !describe(r, number, &p)) continue;
        if (n++ == PRINT_MAX) {
            fputs("... `reprise ps` lists all\n", to);
            return;
        }
        fprintf(to, "process %d: ", f.pid);
        print_text(to, p.exe, strlen(p.exe));
        fputs(f.is_start ? "\n" : " (forked)\n", to);
    }
}

int programs_pid(const struct recording *r, uint64_t stream) {
    struct first f;
    return read_first(r, stream, &f) ? f.pid : 0;
}

size_t programs_find(const struct recording *r, int *pid, struct program **out, char *why, size_t cap) {
    struct first f;
    size_t n = 0;
    *out = calloc(r->n_streams + 1, sizeof **out);
    if (!*pid && read_first(r, 0, &f)) *pid = f.pid;
    for (size_t i = 0; *out && *pid && i < r->n_streams; i++) {
        uint64_t number = r->streams[i].number;
        if (!read_first(r, number, &f) || f.pid != *pid) continue;
        if (n && !(f.is_start && f.parent == (*out)[n - 1].stream)) continue; /* another one with its number */
        if (!describe(r, number, &(*out)[n++])) {
            snprintf(why, cap, "the recording lacks the begin of process %d", *pid);
            n = 0;
            break;
        }
    }
    if (n) return n;
    if (!why[0]) snprintf(why, cap, *pid ? "the recording has no process %d" : "the recording is empty", *pid);
    free(*out);
    *out = NULL;
    return 0;
}
