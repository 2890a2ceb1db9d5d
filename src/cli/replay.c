/* reprise replay: repeats a recording, with a debugger (debug.c) or without (-a). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/debug.h"
#include "cli/print.h"
#include "cli/replay_setup.h"
#include "controller/channel_host.h"
#include "controller/child.h"
#include "controller/feed.h"
#include "controller/start_runtime.h"
#include "replay/process.h"
#include "replay/programs.h"
#include "replay/verify.h"

static const char replay_usage[] =
    "usage: reprise replay [OPTIONS] [DIR|NAME] [-- GDB-ARGS...]\n"
    "\n"
    "Repeats a recording (default: the latest) exactly, from the recording alone: no file, process or network "
    "connection of\n"
    "the recorded program is needed or touched. gdb is started on it, and can go backwards as well as forwards.\n"
    "\n"
    "  -a, --autopilot  without a debugger: repeats what the program wrote to stdout and stderr and ends as it did\n"
    "  -e, --goto-end   begin at the end (the crash)\n"
    "  -g POS           begin at a position, as `when` prints it in gdb\n"
    "  -p PID           the process to debug (default: the first; `reprise ps` lists them)\n"
    "  -s PORT          serve a debugger at this port of 127.0.0.1 (0: any), start none\n"
    "  -x FILE          commands for gdb\n"
    "  -d GDB           this gdb\n"
    "  -q               say less\n"
    "  --verify         also compare the hashes of memory that `record --check` took; with -a all checkpoints, too\n"
    "  --count          count the instructions (slower), for `reprise info` to relate the log's size to\n"
    "  --no-cache       neither use translations kept from earlier runs nor keep any\n"
    "  --help           this text\n"
    "\n"
    "Exit status: gdb's; with -a the recorded program's; 125 if the replay went another way than the recording,\n"
    "or if that has not all of it; both are said.\n";

#define LOOK_LEAST 300 /* us between looks at the rings */
#define LOOK_MOST 10000
#define PROGRESS_AFTER 2000 /* ms */
#define PROGRESS_EVERY 250

struct order {
    const char *name;
    bool autopilot, verify, count, cache;
    int pages; /* descriptor for a page log (replay/gather.h); 0: none */
    struct options debug;
    struct debug_order debugger;
    uint64_t pid; /* 0: the first process */
};

struct session {
    const struct order *order;
    struct recording *recording;
    struct options options;
    char path[PATH_MAX];
    int argc;
    char **argv;
    int channel_fd;
    struct channel *channel;
    struct feed feed;
    pid_t first;          /* the first process */
    char strangers[1024]; /* children that we had before, as /proc lists them */
    bool has_status;
    int status; /* of the first process, as recorded */
    bool failed;
    bool cut; /* a stream ends before its process did */
    uint64_t total, began, shown; /* progress: bytes, ms */
    bool is_shown;
};

/* ---- options ---- */

static bool parse_position(struct order *o, const char *text) {
    return (o->debugger.goal = position_parse(text, &o->debugger.at)) != GOAL_NONE;
}

static bool parse_port(struct order *o, const char *text) {
    uint64_t port;
    if (!parse_u64(text, &port) || port > 65535) return false;
    o->debugger.serves = true;
    o->debugger.port = (unsigned)port;
    return true;
}

static bool parse_pid(struct order *o, const char *text) { return parse_u64(text, &o->pid) && o->pid <= INT_MAX; }

static bool parse_commands(struct order *o, const char *text) {
    o->debugger.commands = text;
    return true;
}

static bool parse_debugger(struct order *o, const char *text) {
    o->debugger.debugger = text;
    return true;
}

/* Not for users: autopilot without outputs. */
static bool parse_pages(struct order *o, const char *text) {
    uint64_t fd;
    if (!parse_u64(text, &fd) || !fd || fd > INT_MAX) return false;
    o->pages = (int)fd;
    return o->autopilot = true;
}

static bool parse_debug(struct order *o, const char *text) { return is_key_value(text) && add_option(&o->debug, text); }

static const struct {
    const char *name, *needs;
    bool (*parse)(struct order *, const char *value);
} with_value[] = {
    {"-g", "a position: EVENT[:TICKS[:STEPS]], begin or end", parse_position},
    {"-s", "a port", parse_port},
    {"-p", "a process", parse_pid},
    {"-x", "a file", parse_commands},
    {"-d", "a debugger", parse_debugger},
    {"--gather", "a descriptor", parse_pages},
    {"--debug", "KEY=VALUE", parse_debug},
};

/* -1: go on; otherwise the exit status. */
static int parse(struct order *o, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        size_t k = 0;
        while (k < sizeof with_value / sizeof *with_value && strcmp(a, with_value[k].name) != 0) k++;
        if (k < sizeof with_value / sizeof *with_value) {
            if (++i >= argc || !with_value[k].parse(o, argv[i]))
                return usage_error(&verb_replay, "%s needs %s", a, with_value[k].needs);
        } else if (strcmp(a, "--") == 0) {
            o->debugger.args = argv + i + 1;
            break;
        } else if (a[0] != '-') {
            if (o->name) return usage_error(&verb_replay, "one recording at a time");
            o->name = a;
        } else if (strcmp(a, "--help") == 0 || strcmp(a, "-h") == 0) {
            fputs(replay_usage, stdout);
            return fflush(stdout) == 0 ? 0 : EXIT_OURS;
        } else if (strcmp(a, "-a") == 0 || strcmp(a, "--autopilot") == 0) {
            o->autopilot = true;
        } else if (strcmp(a, "-e") == 0 || strcmp(a, "--goto-end") == 0) {
            o->debugger.goal = GOAL_END;
        } else if (strcmp(a, "-q") == 0) {
            o->debugger.quiet = true;
        } else if (strcmp(a, "--verify") == 0) {
            o->verify = true;
        } else if (strcmp(a, "--count") == 0) {
            o->count = true;
        } else if (strcmp(a, "--no-cache") == 0) {
            o->cache = false;
        } else {
            return usage_error(&verb_replay, "unknown option '%s'", a);
        }
    }
    if (o->autopilot && o->pid) return usage_error(&verb_replay, "-p is what a debugger shows; -a repeats all processes");
    if (o->autopilot && o->debugger.args && o->debugger.args[0]) { /* no gdb: what follows is the recording */
        if (o->name || o->debugger.args[1]) return usage_error(&verb_replay, "one recording at a time");
        o->name = o->debugger.args[0];
    }
    return -1;
}

/* ---- before the start ---- */

static bool read_command(struct session *s) {
    struct json command, word;
    size_t n = 0;
    if (!json_member(s->recording->header, "command", &command)) goto bad;
    for (word = json_first(command); json_is(word); word = json_next(word)) n++;
    s->argv = calloc(n + 1, sizeof *s->argv);
    if (!n || !s->argv) goto bad;
    for (word = json_first(command); json_is(word); word = json_next(word)) {
        long len = json_string(word, NULL, 0);
        char *text = len < 0 ? NULL : malloc((size_t)len + 1);
        if (!text) goto bad;
        json_string(word, text, (size_t)len + 1);
        s->argv[s->argc++] = text;
    }
    if (!json_member_string(s->recording->header, "path", s->path, sizeof s->path)) goto bad;
    return true;
bad:
    complain("the recording does not say which command it is of");
    return false;
}

static bool prepare(struct session *s) {
    const struct order *o = s->order;
    struct replay_setup setup;
    if (!replay_set_up(&setup, o->name, o->cache, o->verify, &o->debug)) return false;
    s->recording = setup.recording;
    s->options = setup.options;
    if (!read_command(s)) return false;
    for (size_t i = 0; i < s->recording->n_streams; i++) s->total += s->recording->streams[i].raw_len;
    limits_raise();
    s->channel = channel_make(&s->channel_fd, 0);
    if (!s->channel) return false;
    feed_open(&s->feed, s->channel, s->recording);
    return true;
}

/* In the child. */
static int become_runtime(void *arg) {
    struct session *s = arg;
    int channel = inherit_high(s->channel_fd);
    sigset_t none; /* the program's signals are in the log; faults are the runtime's, whatever our caller has blocked */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (channel < 0) {
        complain("cannot hand a descriptor to the runtime: %s", strerror(errno));
        return EXIT_OURS;
    }
    add_optionf(&s->options, "mode=replay,chanfd=%d,stream=0%s", channel, s->order->count ? ",count=1" : "");
    if (s->order->pages) add_optionf(&s->options, "pagesfd=%d", inherit_high(s->order->pages));
    return start_runtime(s->path, &s->options, s->argc, s->argv);
}

/* ---- progress ---- */

static void hide_progress(struct session *s) {
    if (s->is_shown) fputs("\r\033[K", stderr);
    s->is_shown = false;
}

static void show_progress(struct session *s) {
    uint64_t now = now_ms();
    if (now - s->began < PROGRESS_AFTER || now - s->shown < PROGRESS_EVERY || !s->total || !isatty(2)) return;
    s->shown = now;
    s->is_shown = true;
    fprintf(stderr, "\r\033[Kreprise: replaying%s, %.0f %%",
            s->order->pages ? " all processes, for the memory that they share" : "",
            100.0 * (double)feed_taken(&s->feed) / (double)s->total);
}

/* ---- while it goes on ---- */

static uint32_t *the_bell;
static volatile sig_atomic_t interrupted;

static void on_signal(int sig) {
    if (sig != SIGCHLD) interrupted = sig;
    futex_ring(the_bell);
}

static void set_handlers(uint32_t *bell) {
    static const int fatal[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction sa = {.sa_handler = on_signal};
    the_bell = bell;
    sigfillset(&sa.sa_mask);
    sigaction(SIGCHLD, &sa, NULL);
    for (unsigned i = 0; i < sizeof fatal / sizeof *fatal; i++) {
        struct sigaction before;
        sigaction(fatal[i], NULL, &before);
        if (before.sa_handler != SIG_IGN) sigaction(fatal[i], &sa, NULL);
    }
    signal(SIGPIPE, SIG_IGN);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void on_ended(void *arg, uint32_t pid, enum ring_ended how, int status) {
    struct session *s = arg;
    if (how == RING_ENDED_DIVERGED || how == RING_NOT_ENDED) s->failed = true;
    if (how == RING_ENDED_CUT) s->cut = true;
    if (how == RING_ENDED_PROCESS && (pid_t)pid == s->first) {
        s->has_status = true;
        s->status = status;
    }
}

/* A shell that has children may execute us: they are ours then. */
static void list_children(char *text, size_t cap) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, cap - 1);
    text[n < 0 ? 0 : n] = '\0';
    if (fd >= 0) close(fd);
}

static bool is_stranger(const struct session *s, pid_t pid) {
    char word[16];
    int n = snprintf(word, sizeof word, "%d ", (int)pid);
    for (const char *p = s->strangers; (p = strstr(p, word)); p += n)
        if (p == s->strangers || p[-1] == ' ') return true;
    return false;
}

static bool only_strangers_left(const struct session *s) {
    char now[sizeof s->strangers];
    if (!s->strangers[0]) return false;
    list_children(now, sizeof now);
    for (char *p = now, *end; *p; p = end + (*end == ' '))
        if (!is_stranger(s, (pid_t)strtol(p, &end, 10))) return false;
    return true;
}

/* Waits for those that have ended. False: nobody is left. */
static bool reap(struct session *s) {
    for (int status;;) {
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid == 0) return !only_strangers_left(s);
        if (pid < 0) return errno != ECHILD;
        if (is_stranger(s, pid)) continue;
        if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_OURS) s->failed = true;
        if (WIFSIGNALED(status) && !interrupted) {
            if (!s->failed) complain("a replaying process was killed by signal %d", WTERMSIG(status));
            s->failed = true;
        }
    }
}

/* Ends the processes that we know of: those that use a ring, and the first one. New ones may come up meanwhile. */
static void end_all(struct session *s) {
    kill(s->first, SIGKILL);
    for (uint64_t until = now_ms() + 2000; now_ms() < until;) {
        s->feed.last_deaths = 0;
        feed_look(&s->feed);
        for (uint32_t i = 0; i < CHANNEL_RINGS; i++)
            if (s->feed.rings[i].active && s->feed.rings[i].pid > 1 && s->feed.rings[i].pid <= 0x7fffffff)
                kill((pid_t)s->feed.rings[i].pid, SIGKILL);
        bool was_failed = s->failed;
        s->failed = true; /* the deaths to come need no words */
        bool left = reap(s);
        s->failed = was_failed;
        if (!left) return;
        usleep(1000);
    }
}

static void watch(struct session *s) {
    unsigned pause = LOOK_LEAST;
    s->began = now_ms();
    for (;;) {
        uint32_t seen = CHANNEL_GET(s->channel->doorbell);
        __atomic_add_fetch(&s->channel->heartbeat, 1, __ATOMIC_RELEASE);
        bool left = reap(s), busy = feed_look(&s->feed);
        if (!left || s->failed || interrupted) return;
        show_progress(s);
        pause = busy ? LOOK_LEAST : pause * 2 < LOOK_MOST ? pause * 2 : LOOK_MOST;
        futex_wait_us(&s->channel->doorbell, seen, pause);
    }
}

/* ---- the end ---- */

/* How the recorded program ended, if its stream does not tell. */
static bool status_of_recording(const struct recording *r, int *status) {
    int64_t v;
    if (!json_is(r->end) || !json_member_i64(r->end, "status", &v)) return false;
    *status = (int)v;
    return true;
}

static int conclude(struct session *s) {
    hide_progress(s);
    if (interrupted) exit_like(interrupted);
    if (s->failed || s->feed.damaged) return EXIT_OURS;
    if (s->order->pages) return 0;
    if (s->channel->out_error) {
        complain("cannot repeat all of the output: %s", strerror(s->channel->out_error));
        return EXIT_OURS;
    }
    char reason[32];
    bool is_stopped = recording_was_stopped(s->recording, reason, sizeof reason);
    if (s->has_status && is_stopped && (s->cut || s->feed.refused)) {
        complain("the recording stops here (%s): not all processes are in it, or not to their end", reason);
        return EXIT_OURS;
    }
    if (!s->has_status && (is_stopped || !status_of_recording(s->recording, &s->status))) {
        complain("the recording stops here%s%s%s: the program went on%s", *reason ? " (" : "", reason,
                 *reason ? ")" : "", json_is(s->recording->end) ? " unrecorded" : "");
        return EXIT_OURS;
    }
    exit_like(s->status);
}

/* Beside the log: a fact about the recording that only a replay can tell. */
static void keep_count(const struct session *s) {
    char path[PATH_MAX];
    if (!s->recording->dir) return;
    snprintf(path, sizeof path, "%s/" COUNT_FILE, s->recording->dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || dprintf(fd, "%lu\n", s->feed.instructions) < 0)
        complain("%s: the count cannot be kept: %s", path, strerror(errno));
    if (fd >= 0) close(fd);
}

/* ---- with a debugger ---- */

struct debugged {
    struct replay_setup setup;
    struct timeline_options options;
};

static struct target *open_timeline(void *arg) {
    struct debugged *d = arg;
    char why[WHY_MAX] = "";
    struct target *t = process_open(&d->options, why, sizeof why);
    if (!t) complain("%s", why);
    return t;
}

/* For `info recording` in gdb. */
static char *about(const struct recording *r) {
    char *text = NULL, directory[PATH_MAX] = "";
    size_t n;
    FILE *f = open_memstream(&text, &n);
    if (!f) return NULL;
    fprintf(f, "%s: ", r->dir ? r->dir : "recording");
    print_command(f, r);
    if (json_member_string(r->header, "directory", directory, sizeof directory)) {
        fputs(", in ", f);
        print_text(f, directory, strlen(directory));
    }
    fputc('\n', f);
    programs_print(r, f);
    fclose(f);
    return text;
}

static int with_debugger(struct order *o) {
    static struct debugged d;
    if (!replay_set_up(&d.setup, o->name, o->cache, o->verify, &o->debug)) return EXIT_OURS;
    d.options = (struct timeline_options){.recording = d.setup.recording,
                                          .pid = (int)o->pid,
                                          .quiet = o->debugger.quiet,
                                          .store = d.setup.store,
                                          .options = &d.setup.options};
    o->debugger.recording = d.setup.recording;
    o->debugger.store = d.setup.store;
    o->debugger.about = about(d.setup.recording);
    o->debugger.open = open_timeline;
    o->debugger.arg = &d;
    return debug(&o->debugger);
}

/* ---- checkpoints ---- */

/* In a process of its own: it replays, and so do we. */
static int check_checkpoints(const struct order *o) {
    struct replay_setup setup;
    char why[WHY_MAX] = "";
    if (!replay_set_up(&setup, o->name, o->cache, false, &o->debug)) return EXIT_OURS; /* hashes are ours */
    struct timeline_options options = {.recording = setup.recording, .store = setup.store, .options = &setup.options};
    if (verify_checkpoints(&options, why, sizeof why)) return 0;
    complain("%s", why);
    return EXIT_OURS;
}

static bool checkpoints_hold(const struct order *o) {
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) _exit(check_checkpoints(o));
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    return pid > 0 && status == 0;
}

static int replay_main(int argc, char **argv) {
    static struct order order = {.cache = true};
    static struct session session;
    struct session *s = &session;
    s->order = &order;
    child_fill_gaps();
    order.debugger.debugger = "gdb";
    int status = parse(&order, argc, argv);
    if (status >= 0) return status;
    if (!order.autopilot) return with_debugger(&order);
    if (order.verify && !checkpoints_hold(&order)) return EXIT_OURS;
    if (!prepare(s)) return EXIT_OURS;
    if (!recording_stream(s->recording, 0)) return conclude(s); /* it ended before anything happened */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    list_children(s->strangers, sizeof s->strangers);
    struct child first;
    if (!child_start(&first, become_runtime, s)) {
        complain("cannot start a process: %s", strerror(errno));
        return EXIT_OURS;
    }
    s->first = first.pid;
    s->feed.ended = on_ended;
    s->feed.arg = s;
    set_handlers(&s->channel->doorbell);
    close(s->channel_fd);
    watch(s);
    if (s->failed || interrupted) end_all(s);
    s->feed.last_deaths = 0;
    feed_look(&s->feed); /* last words */
    if (order.count && !s->failed && !interrupted) keep_count(s);
    return conclude(s);
}

const struct verb verb_replay = {"replay", "repeat a recording", replay_usage, replay_main};
