/* reprise record: runs a program with a runtime that records, and writes the log.
 *
 * Four threads: this one takes events out of the rings and looks after the child, one compresses and writes frames
 * (log_writer.c), one keeps mapped files (file_keeper.c), one stores checkpoints (ckpt/taker.c). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ckpt/taker.h"
#include "cli/cli.h"
#include "cli/print.h"
#include "controller/channel_host.h"
#include "controller/child.h"
#include "controller/drain.h"
#include "controller/header.h"
#include "controller/start_runtime.h"
#include "controller/where.h"
#include "log/place.h"

static const char record_usage[] =
    "usage: reprise record [OPTIONS] [--] CMD [ARGS...]\n"
    "\n"
    "Runs CMD and records it with all processes that it starts, so that `reprise replay` can repeat it exactly. "
    "Output,\n"
    "exit status and signals are the program's. The recording goes to $REPRISE_DIR/NAME-N, else to\n"
    "~/.local/share/reprise/NAME-N; `latest` there leads to the one made last.\n"
    "\n"
    "  -o DIR         record into DIR, which is made, or is empty\n"
    "  --wait         go on until all processes have ended, not just the first (or until interrupted then)\n"
    "  --chaos        choose at random which thread runs when, to make rare interleavings likely\n"
    "  --check        also record hashes of memory, for `replay --verify`\n"
    "  --cpu v2|v3    show the program a processor of this x86-64 level, to replay on others\n"
    "  --checkpoint-interval SECONDS|none\n"
    "                 keep the state about so often, so that replay can begin there (default 1; longer where that "
    "would\n"
    "                 cost more than 3 %)\n"
    "  --limit SIZE   stop recording when the log has so many bytes (K, M, G; default 20G)\n"
    "  --no-cache     neither use translations kept from earlier runs nor keep any\n"
    "  --help         this text\n"
    "\n"
    "When the limit is reached or the disk is nearly full, recording stops, what was recorded can be replayed, and "
    "the\n"
    "program goes on.\n";

#define LIMIT_DEFAULT (20ull << 30)
#define LOOK_LEAST 10000 /* us between looks at the rings: while something comes, */
#define LOOK_MOST 40000  /* and when nothing does */
#define GRACE 30         /* ms for processes that are about to end when the first one has, */
#define GRACE_MOST 5000  /* and as long as they wait for a processor */

struct order {
    const char *dir; /* -o */
    bool wait, cache;
    uint32_t flags; /* of the channel */
    enum cpu_level cpu;
    uint64_t limit;
    uint64_t checkpoint_ms; /* 0: none are taken */
    struct options debug;
    int argc;
    char **argv;
    char path[PATH_MAX]; /* of the command */
};

struct session {
    const struct order *order;
    char dir[PATH_MAX];
    bool made_dir; /* it was not there before */
    int lock, log, channel_fd, sockets[2];
    struct options options;
    struct store store;
    struct channel *channel;
    struct log_writer writer;
    struct file_keeper keeper;
    struct drain drain;
    struct taker *taker; /* NULL: no checkpoints */
    struct child child;
    bool has_latest;
    const char *stopped; /* why recording stopped before the program ended, or NULL */
    uint64_t last_disk;  /* ms */
};

/* ---- options ---- */

static int bad(const char *what) { return usage_error(&verb_record, "%s", what); }

/* Seconds, with a fraction or none. */
static bool parse_interval(const char *text, uint64_t *ms) {
    char *end;
    double seconds = strtod(text, &end);
    if (strcmp(text, "none") == 0) {
        *ms = 0;
        return true;
    }
    if (end == text || *end || !(seconds >= 0.001 && seconds <= 1e6)) return false;
    *ms = (uint64_t)(seconds * 1000);
    return true;
}

/* Takes the options out. -1: go on; else the exit status. */
static int parse(struct order *o, int argc, char **argv) {
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        const char *a = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(a, "--") == 0) {
            i++;
            break;
        } else if (strcmp(a, "--help") == 0 || strcmp(a, "-h") == 0) {
            fputs(record_usage, stdout);
            return fflush(stdout) == 0 ? 0 : EXIT_OURS;
        } else if (strcmp(a, "--wait") == 0) {
            o->wait = true;
        } else if (strcmp(a, "--chaos") == 0) {
            o->flags |= CHANNEL_CHAOS;
        } else if (strcmp(a, "--check") == 0) {
            o->flags |= CHANNEL_CHECK;
        } else if (strcmp(a, "--no-cache") == 0) {
            o->cache = false;
        } else if (strcmp(a, "-o") == 0) {
            if (!value || !*value) return bad("-o needs a directory");
            o->dir = argv[++i];
        } else if (strcmp(a, "--cpu") == 0) {
            if (!value || (strcmp(value, "v2") != 0 && strcmp(value, "v3") != 0)) return bad("--cpu needs v2 or v3");
            o->cpu = argv[++i][1] == '2' ? CPU_V2 : CPU_V3;
        } else if (strcmp(a, "--checkpoint-interval") == 0) {
            if (!value || !parse_interval(value, &o->checkpoint_ms))
                return bad("--checkpoint-interval needs a number of seconds, or none");
            i++;
        } else if (strcmp(a, "--limit") == 0) {
            if (!value || !parse_size(value, &o->limit) || !o->limit) return bad("--limit needs a size, like 500M");
            i++;
        } else if (strcmp(a, "--debug") == 0) {
            if (!value || !is_key_value(value)) return bad("--debug needs KEY=VALUE");
            if (!add_option(&o->debug, argv[++i])) return bad("--debug: too long");
        } else {
            return usage_error(&verb_record, "unknown option '%s'", a);
        }
    }
    if (i >= argc) return bad("no command given");
    o->argc = argc - i;
    o->argv = argv + i;
    return -1;
}

/* ---- before the program starts ---- */

static bool failed(const char *what) {
    complain("%s: %s", what, strerror(errno));
    return false;
}

/* What must stay free: 500 MB or 2 %, but no more than a tenth of a small disk. */
static uint64_t least_free(const struct statvfs *v) {
    const char *given = getenv("REPRISE_MIN_FREE");
    uint64_t total = (uint64_t)v->f_blocks * v->f_frsize, least = total / 50;
    if (given && *given) return strtoull(given, NULL, 10);
    if (least < 500ull << 20) least = 500ull << 20;
    return least < total / 10 ? least : total / 10;
}

static bool open_store(struct session *s, char *path, size_t cap) {
    char base[PATH_MAX], why[WHY_MAX];
    if (!place_base(base, sizeof base, why)) {
        complain("%s", why); /* even with -o: mapped files need a place */
        return false;
    }
    snprintf(path, cap, "%s/store", base);
    struct statvfs v;
    if (!store_open(&s->store, path)) return false;
    if (fstatvfs(s->store.dir, &v) == 0) s->store.min_free = least_free(&v);
    s->lock = place_lock(base, false, true, why);
    if (s->lock < 0) complain("%s", why);
    return s->lock >= 0;
}

static bool open_log(struct session *s, const char *store, unsigned long seed) {
    const struct order *o = s->order;
    char path[PATH_MAX + 8];
    snprintf(path, sizeof path, "%s/log", s->dir);
    s->log = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (s->log < 0) return failed(path);
    flock(s->log, LOCK_EX | LOCK_NB); /* says that the recording is under way */
    struct header_facts facts = {.argc = o->argc,
                                 .argv = o->argv,
                                 .path = o->path,
                                 .store = store,
                                 .seed = seed,
                                 .cpu = o->cpu,
                                 .chaos = !!(o->flags & CHANNEL_CHAOS),
                                 .check = !!(o->flags & CHANNEL_CHECK)};
    size_t len;
    char *header = header_text(&facts, &len);
    bool done = header && writer_open(&s->writer, s->log, o->limit, header, len);
    free(header);
    return done || failed(path);
}

/* Everything that can fail, before anything of the program has happened. */
static bool prepare(struct session *s) {
    const struct order *o = s->order;
    char store[PATH_MAX + 8];
    limits_raise();
    if (!open_store(s, store, sizeof store)) return false;
    s->made_dir = !o->dir || access(o->dir, F_OK) < 0;
    if (!where_make(o->dir, o->argv[0], s->dir, sizeof s->dir)) return false;
    unsigned long seed = add_cache_options(&s->options, o->cache, NULL);
    if (o->cpu != CPU_ALL) add_option(&s->options, o->cpu == CPU_V2 ? "cpu=v2" : "cpu=v3");
    add_optionf(&s->options, "ckpt=%lu", o->checkpoint_ms);
    if (o->debug.len && !add_option(&s->options, o->debug.text)) return bad("--debug: too long") < 0;
    if (!open_log(s, store, seed)) return false;
    s->channel = channel_make(&s->channel_fd, o->flags);
    if (!s->channel) return false;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s->sockets) < 0) return failed("cannot make a socket");
    s->channel->next_stream = 1;
    s->channel->next_ring = 1;
    ring_reset(&s->channel->rings[0], 0, RING_OPEN);
    keeper_open(&s->keeper, s->channel, &s->store, &s->writer, s->sockets[0]);
    drain_open(&s->drain, s->channel, &s->writer, &s->keeper);
    return true;
}

/* In the child. */
static int become_runtime(void *arg) {
    struct session *s = arg;
    const struct order *o = s->order;
    int channel = inherit_high(s->channel_fd), socket = inherit_high(s->sockets[1]);
    limits_restore();
    if (channel < 0 || socket < 0) {
        complain("cannot hand descriptors to the runtime: %s", strerror(errno));
        return EXIT_OURS;
    }
    add_optionf(&s->options, "mode=record,chanfd=%d,sockfd=%d,stream=0,ring=0", channel, socket);
    return start_runtime(o->path, &s->options, o->argc, o->argv);
}

/* ---- while the program runs ---- */

/* Gives recording up; the program goes on. */
static void stop(struct session *s, const char *reason) {
    if (s->stopped) return;
    s->stopped = reason;
    drain_look(&s->drain);
    drain_flush(&s->drain);
    drain_stop(&s->drain);
    s->drain.discard = true;
}

static void stop_for_writer(struct session *s, enum writer_trouble t) {
    char text[16];
    if (s->stopped) return;
    if (t == WRITER_LIMIT)
        complain("recording stopped: the log has reached %s (--limit); the program goes on",
                 size_text(s->order->limit, text));
    else
        complain("recording stopped: cannot write %s/log: %s; the program goes on", s->dir, strerror(s->writer.error));
    stop(s, t == WRITER_LIMIT ? "limit" : "error");
}

/* --debug stop-at: a runtime waits for it. */
static void look_at_wish(struct session *s) {
    if (s->stopped || !CHANNEL_GET(s->channel->stop_wanted)) return;
    complain("recording stopped: --debug stop-at; the program goes on");
    stop(s, "limit");
}

static void look_at_disk(struct session *s) {
    struct statvfs v;
    uint64_t now = now_ms();
    char text[16];
    if (s->stopped || (s->last_disk && now - s->last_disk < 1000) || fstatvfs(s->log, &v) < 0) return;
    s->last_disk = now;
    if ((uint64_t)v.f_bavail * v.f_frsize >= least_free(&v)) return;
    complain("recording stopped: less than %s left on the disk of %s; the program goes on",
             size_text(least_free(&v), text), s->dir);
    stop(s, "disk");
}

/* One look around. True: something was there. */
static bool look(struct session *s) {
    __atomic_add_fetch(&s->channel->heartbeat, 1, __ATOMIC_RELEASE);
    child_look(&s->child, &s->drain);
    bool took = drain_look(&s->drain);
    enum writer_trouble t = __atomic_load_n(&s->writer.trouble, __ATOMIC_ACQUIRE);
    if (t) stop_for_writer(s, t);
    look_at_disk(s);
    look_at_wish(s);
    if (s->drain.streams && !s->has_latest) {
        where_set_latest(s->dir);
        s->has_latest = true;
    }
    return took;
}

static bool is_over(struct session *s) {
    if (!s->child.ended) return false;
    if (!s->order->wait || s->stopped || s->child.told_to_end) return true;
    if (s->drain.n_active) return false;
    drain_look(&s->drain); /* one may just have come up */
    return s->drain.n_active == 0;
}

static void watch(struct session *s) {
    unsigned pause = LOOK_LEAST;
    for (;;) {
        uint32_t seen = CHANNEL_GET(s->channel->doorbell);
        bool took = look(s);
        if (is_over(s)) return;
        pause = took ? LOOK_LEAST : pause * 2 < LOOK_MOST ? pause * 2 : LOOK_MOST;
        futex_wait_us(&s->channel->doorbell, seen, pause);
    }
}

/* ---- when it has ended ---- */

/* Takes out what is still in the rings; who writes on then does so in vain. */
static void drain_rest(struct session *s) {
    for (uint64_t until = now_ms() + 2000; now_ms() < until;) {
        bool took = drain_look(&s->drain), room = writer_has_room(&s->writer);
        if (!took && room) break;
        if (!room) usleep(1000);
    }
    drain_flush(&s->drain);
}

static unsigned count_left(struct session *s) {
    unsigned left;
    drain_look(&s->drain);
    uint64_t began = now_ms(), due = began;
    while ((left = drain_count_alive(&s->drain, (uint32_t)s->child.pid)) > 0) {
        uint64_t now = now_ms();
        if (drain_is_one_due(&s->drain, (uint32_t)s->child.pid, GRACE)) due = now;
        if (now - due >= GRACE || now - began >= GRACE_MOST) break;
        usleep(1000);
        drain_look(&s->drain);
    }
    return left;
}

/* Whatever goes wrong with them costs time at replay, nothing else. */
static void finish_checkpoints(struct session *s) {
    char why[WHY_MAX] = "";
    if (s->taker) taker_stop(s->taker, why);
    if (why[0]) complain("%s", why);
}

static void finish(struct session *s) {
    unsigned left = count_left(s);
    if (left && !s->stopped) complain("%u process%s on unrecorded", left, left == 1 ? " goes" : "es go");
    drain_rest(s);
    drain_stop(&s->drain); /* from here on nobody need do what a log could repeat */
    finish_checkpoints(s);
    keeper_finish(&s->keeper);
    writer_finish(&s->writer);
    if (s->writer.trouble) stop_for_writer(s, s->writer.trouble);
    struct end_facts e = {.status = s->child.status,
                          .reason = s->stopped ? s->stopped : "end",
                          .streams = s->drain.streams,
                          .raw = s->writer.raw,
                          .stored = s->writer.stored,
                          .left = left,
                          .times = &s->drain.times};
    size_t len;
    char *text = end_text(&e, &len);
    if (text) writer_end(&s->writer, text, len);
    free(text);
}

/* A directory in which nothing came to pass. */
static void remove_recording(struct session *s) {
    char path[PATH_MAX + 8];
    if (!s->dir[0]) return;
    snprintf(path, sizeof path, "%s/log", s->dir);
    unlink(path);
    if (s->made_dir) rmdir(s->dir);
}

static int record_main(int argc, char **argv) {
    static struct order order = {.cache = true, .limit = LIMIT_DEFAULT, .checkpoint_ms = 1000};
    static struct session session;
    struct session *s = &session;
    s->order = &order;
    child_fill_gaps();
    int status = parse(&order, argc, argv);
    if (status >= 0) return status;
    status = find_command(order.argv[0], order.path, sizeof order.path);
    if (status) return status;

    bool ready = prepare(s);
    if (ready && !child_start(&s->child, become_runtime, s)) ready = failed("cannot start a process");
    if (!ready) {
        remove_recording(s);
        return EXIT_OURS;
    }
    uint32_t nobody = 0; /* until the runtime says it itself */
    __atomic_compare_exchange_n(&s->channel->rings[0].pid, &nobody, (uint32_t)s->child.pid, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
    const int own[] = {s->lock, s->log, s->sockets[0], s->store.dir, s->channel_fd};
    child_let_go(own, sizeof own / sizeof *own);
    if (!writer_start(&s->writer) || !keeper_start(&s->keeper)) {
        drain_stop(&s->drain);
        complain("cannot start a thread: %s; the program goes on unrecorded", strerror(errno));
        waitpid(s->child.pid, &s->child.status, 0);
        exit_like(s->child.status);
    }
    if (order.checkpoint_ms) s->taker = taker_start(s->channel, s->channel_fd, s->dir);
    child_watch(&s->child, &s->channel->doorbell);
    watch(s);
    finish(s);
    if (!s->drain.streams && !s->stopped && WIFEXITED(s->child.status) && WEXITSTATUS(s->child.status) >= EXIT_OURS)
        remove_recording(s); /* the command could not be started */
    else if (!s->has_latest)
        where_set_latest(s->dir);
    exit_like(s->child.status);
}

const struct verb verb_record = {"record", "run a program and record it", record_usage, record_main};
