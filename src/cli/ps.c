/* reprise ps: the processes of a recording as a tree. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "cli/print.h"
#include "log/summary.h"

static const char ps_usage[] =
    "usage: reprise ps [--json] [DIR|NAME]\n"
    "\n"
    "Lists the processes of a recording (default: the latest), children below their parents: number, streams (one\n"
    "for each program it executed), threads, events, how it ended, command line.\n"
    "\n"
    "  --json   an array of objects, one for each process\n"
    "  --help   this text\n";

#define NONE ((size_t)-1)

/* A process is a chain of streams: each but the last ended in exec. */
struct process {
    size_t first, last; /* streams */
    size_t parent;      /* process, or NONE */
    size_t child, next; /* first child, next sibling */
    uint64_t threads, events, n_streams;
};

struct tree {
    const struct summary *s;
    struct process *processes;
    size_t n;
    size_t *of; /* process of a stream */
};

static size_t index_of(const struct summary *s, uint64_t number) {
    const struct stream_facts *f = summary_stream(s, number);
    return f ? (size_t)(f - s->streams) : NONE;
}

static void add_stream(struct tree *t, size_t i) {
    const struct stream_facts *f = &t->s->streams[i], *before = summary_before(t->s, f);
    size_t p = before ? t->of[before - t->s->streams] : t->n++;
    if (!before) {
        size_t maker = index_of(t->s, f->parent);
        size_t parent = maker != NONE && maker < i ? t->of[maker] : NONE;
        t->processes[p] = (struct process){.first = i, .parent = parent, .child = NONE, .next = NONE};
    }
    t->of[i] = p;
    t->processes[p].last = i;
    t->processes[p].n_streams++;
    t->processes[p].threads += f->threads;
    t->processes[p].events += f->events;
}

/* Children in the order of their numbers: the list is built from the back. */
static void join_siblings(struct tree *t) {
    for (size_t i = t->n; i-- > 0;) {
        struct process *p = &t->processes[i];
        if (p->parent == NONE) continue;
        p->next = t->processes[p->parent].child;
        t->processes[p->parent].child = i;
    }
}

static bool build(struct tree *t, const struct summary *s) {
    *t = (struct tree){.s = s};
    t->processes = calloc(s->n_streams + 1, sizeof *t->processes);
    t->of = calloc(s->n_streams + 1, sizeof *t->of);
    if (!t->processes || !t->of) return false;
    for (size_t i = 0; i < s->n_streams; i++) add_stream(t, i);
    join_siblings(t);
    return true;
}

static void free_tree(struct tree *t) {
    free(t->processes);
    free(t->of);
}

/* The program that a process runs in its last stream: the stream, or where it was forked from, that began with START. */
static const struct stream_facts *program_of(const struct tree *t, size_t i) {
    const struct summary *s = t->s;
    for (size_t hops = 0; hops <= s->n_streams; hops++) {
        const struct stream_facts *f = &s->streams[i];
        if (!f->forked) return f;
        size_t parent = index_of(s, f->parent);
        if (parent == NONE || parent >= i) return NULL;
        i = parent;
    }
    return NULL;
}

static const char *how_it_ended(const struct stream_facts *f, char text[48]) {
    if (f->end == STREAM_EXITED) return status_text(f->status, text);
    return f->end == STREAM_EXEC ? "in exec" : "cut off";
}

static void print_process(const struct tree *t, size_t i, int depth) {
    const struct process *p = &t->processes[i];
    const struct stream_facts *first = &t->s->streams[p->first], *last = &t->s->streams[p->last];
    const struct stream_facts *program = program_of(t, p->last);
    char text[48];
    printf("%8u %8u %7lu %7lu %9lu  %-18s %*s", first->pid, first->ppid, p->n_streams, p->threads, p->events,
           how_it_ended(last, text), 2 * (depth < 20 ? depth : 20), "");
    if (program && program->words)
        print_words(stdout, program->words, program->words_len);
    else if (program)
        print_text(stdout, program->exe, strlen(program->exe));
    if (program != last) fputs(" (forked)", stdout);
    putchar('\n');
}

static void print_process_json(const struct tree *t, size_t i) {
    const struct process *p = &t->processes[i];
    const struct stream_facts *first = &t->s->streams[p->first], *last = &t->s->streams[p->last];
    const struct stream_facts *program = program_of(t, p->last);
    printf("{\"pid\": %u, \"ppid\": %u, \"streams\": [", first->pid, first->ppid);
    for (size_t k = p->first, n = 0; k <= p->last; k++)
        if (t->of[k] == i) printf("%s%lu", n++ ? ", " : "", t->s->streams[k].number);
    printf("], \"threads\": %lu, \"events\": %lu, \"forked\": %s", p->threads, p->events,
           program != last ? "true" : "false");
    if (program) {
        fputs(", \"exe\": ", stdout);
        json_write_string(stdout, program->exe, strlen(program->exe));
        if (program->words) {
            fputs(", \"command\": ", stdout);
            print_words_json(stdout, program->words, program->words_len);
        }
    }
    printf(", \"end\": \"%s\"", last->end == STREAM_EXITED ? "exited" : last->end == STREAM_EXEC ? "exec" : "cut");
    if (last->end == STREAM_EXITED) printf(", \"status\": %d", last->status);
    putchar('}');
}

/* Down and to the right without recursion: a hostile tree may be deep. */
static void print_all(const struct tree *t, bool json) {
    const char *between = "";
    for (size_t root = 0; root < t->n; root++) {
        if (t->processes[root].parent != NONE) continue;
        int depth = 0;
        for (size_t i = root; i != NONE;) {
            const struct process *p = &t->processes[i];
            if (json) {
                printf("%s", between);
                print_process_json(t, i);
                between = ",\n ";
            } else {
                print_process(t, i, depth);
            }
            if (p->child != NONE) {
                i = p->child;
                depth++;
                continue;
            }
            while (i != root && t->processes[i].next == NONE) {
                i = t->processes[i].parent;
                depth--;
            }
            i = i == root ? NONE : t->processes[i].next;
        }
    }
}

static int ps_main(int argc, char **argv) {
    static const struct option options[] = {{"json", 0, NULL, 'j'}, {"help", 0, NULL, 'h'}, {0}};
    bool json = false;
    for (int c; (c = verb_option(&verb_ps, argc, argv, "h", options)) != -1;) {
        if (c == VERB_DONE || c == VERB_WRONG) return c == VERB_DONE ? 0 : EXIT_OURS;
        json = true;
    }
    if (argc - optind > 1) return usage_error(&verb_ps, "one recording at a time");

    struct recording *r = open_recording(argv[optind]);
    if (!r) return EXIT_OURS;
    recording_verify(r);
    struct summary *s = summary_of(r);
    struct tree t = {0};
    int status = EXIT_OURS;
    if (s && build(&t, s)) {
        fputs(json ? "[" : "     PID     PPID STREAMS THREADS    EVENTS  END                COMMAND\n", stdout);
        print_all(&t, json);
        if (json) puts("]");
        status = printed();
        say_if_cut(r);
        if (recording_is_damaged(r)) status = EXIT_OURS;
    } else {
        complain("out of memory");
    }
    free_tree(&t);
    summary_free(s);
    recording_close(r);
    return status;
}

const struct verb verb_ps = {"ps", "list the processes of a recording", ps_usage, ps_main};
