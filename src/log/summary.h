/* What the events of a recording say in sum: for `info` and `ps`. */
#ifndef REPRISE_LOG_SUMMARY_H
#define REPRISE_LOG_SUMMARY_H

#include "log/recording.h"

#define SUMMARY_THREADS (1u << 20) /* R-threads of a stream; more are damage */
#define SUMMARY_WORDS (128u << 10) /* bytes of a command line that are looked at */
#define NO_STREAM UINT64_MAX

enum stream_end {
    STREAM_CUT,    /* the recording ends before the stream does */
    STREAM_EXEC,   /* the last event is EXEC: the process goes on in stream `next` */
    STREAM_EXITED, /* `status` */
};

/* One address space. Texts come from the recording: they may hold anything but a terminator. */
struct stream_facts {
    uint64_t number;
    bool forked; /* began with FORKED, else with START */
    uint32_t pid, ppid;
    uint64_t parent; /* FORKED: stream that forked. START: the one that this exec was called in, or NO_STREAM */
    uint64_t next;   /* STREAM_EXEC */
    enum stream_end end;
    int status; /* STREAM_EXITED: as wait() gives it */
    char comm[17], exe[513];
    char *words; /* command line: words with a terminator each, words_len bytes; NULL: none (forked, or not found) */
    size_t words_len;
    uint64_t threads, events, ticks; /* ticks: sum over R-threads */
    uint64_t kinds[32];              /* events by kind */
    uint64_t raw_len, stored_len;
    uint64_t interleaving_raw, interleaving_stored; /* see docs/formats.md, Sizes */
    char damage[256];                               /* "" : none */
};

struct summary {
    struct stream_facts *streams; /* as recording.streams */
    size_t n_streams;
    uint64_t events, threads, ticks, processes;
    uint64_t raw_len, stored_len; /* of events; stored_len with heads */
    uint64_t interleaving_raw, interleaving_stored;
    uint64_t kinds[32];
    uint64_t objects_size; /* kept files, each counted once */
    size_t objects;
};

/* NULL: out of memory. */
struct summary *summary_of(const struct recording *);
void summary_free(struct summary *);
const struct stream_facts *summary_stream(const struct summary *, uint64_t number); /* NULL: none */
/* The stream in which the same process ran before an exec, or NULL. Streams are numbered as they begin: it has the smaller
 * number. (A child of vfork() executes out of its parent's stream, but is another process.) */
const struct stream_facts *summary_before(const struct summary *, const struct stream_facts *);

#endif
