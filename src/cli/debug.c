/* A debugger on a target.
 *
 * With gdb there are two processes: this one becomes gdb, so the terminal, job control and the exit status are gdb's as if we
 * were not there; a child in a session of its own, where no Ctrl-C reaches it, serves the target and ends when gdb does. Both
 * meet in a private directory. At a port this process serves, and starts nothing. */
#include "cli/debug.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/gdb_script.h"
#include "rsp/listen.h"
#include "rsp/serve.h"

struct debug {
    const struct debug_order *order;
    char dir[64]; /* private; "" until it is made */
    char address[LISTEN_PATH_MAX], script[96];
    int listener;
    pid_t gdb;   /* whose end is ours; 0: nobody's */
    int printed; /* what the program and functions that are called print, for gdb to show; 0: they print where we do */
    struct target *target;
};

/* ---- the private directory ---- */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where) { return remove(path); }

static void remove_dir(struct debug *d) {
    if (d->dir[0]) nftw(d->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    d->dir[0] = '\0';
}

/* A name that a socket's address and a gdb command can hold. */
static bool is_short_and_plain(const char *path) {
    return path[0] == '/' && strlen(path) < 32 &&
           !path[strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "0123456789/._+-")];
}

static bool make_dir(struct debug *d) {
    const char *places[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};
    for (int i = 0; i < 3; i++) {
        if (!places[i] || !is_short_and_plain(places[i])) continue;
        snprintf(d->dir, sizeof d->dir, "%s/reprise-XXXXXX", places[i]);
        if (mkdtemp(d->dir)) return true;
    }
    complain("cannot make a directory in /tmp: %s", strerror(errno));
    d->dir[0] = '\0';
    return false;
}

static bool write_script(struct debug *d) {
    const struct debug_order *o = d->order;
    struct gdb_script s = {.address = d->address, .quiet = o->quiet};
    static struct debug_files files;
    char exe[PATH_MAX], root[96];
    snprintf(d->script, sizeof d->script, "%s/commands", d->dir);
    snprintf(root, sizeof root, "%s/root", d->dir);
    if (o->recording && o->store && d->target->ops->exe_path(d->target, exe, sizeof exe) &&
        debug_files_find(&files, o->recording, o->store, exe, root)) {
        s.sysroot = files.sysroot;
        if (o->goal == GOAL_NONE || o->goal == GOAL_BEGIN)
            s.program = files.program; /* elsewhere it may be another one */
    }
    FILE *f = fopen(d->script, "wex");
    if (f) gdb_script_write(&s, f);
    if (f && fclose(f) == 0) return true;
    complain("%s: %s", d->script, strerror(errno));
    return false;
}

/* ---- serving ---- */

static volatile sig_atomic_t told_to_end;
static volatile int connection = -1;

static void on_end(int sig) {
    told_to_end = sig;
    if (connection >= 0) shutdown(connection, SHUT_RDWR); /* who waits for a packet, or for the program, wakes up */
}

static bool is_over(void *arg) {
    struct debug *d = arg;
    return told_to_end || (d->gdb && getppid() != d->gdb);
}

static void serve_all(struct debug *d) {
    struct stop at = goal_reach(d->target, d->order->goal, d->order->at);
    if (at.reason == STOP_FAILED) complain("%.*s", (int)sizeof at.text - 1, at.text);
    for (int fd; (fd = listen_accept(d->listener, is_over, d)) >= 0;) {
        connection = fd;
        enum served how = serve(fd, d->target, &at, d->order->about, d->printed);
        connection = -1;
        close(fd);
        if (how == SERVED_KILLED) break;
    }
}

static void set_end_signals(void) {
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction sa = {.sa_handler = on_end};
    sigfillset(&sa.sa_mask);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) sigaction(ends[i], &sa, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static bool open_target(struct debug *d) {
    d->target = d->order->open(d->order->arg);
    return d->target != NULL;
}

/* ---- at a port ---- */

static int serve_port(struct debug *d) {
    unsigned port = d->order->port;
    d->listener = listen_port(&port);
    if (d->listener < 0) {
        complain("port %u: %s", port, strerror(errno));
        return EXIT_OURS;
    }
    set_end_signals();
    snprintf(d->address, sizeof d->address, "127.0.0.1:%u", port);
    bool ready = open_target(d) && make_dir(d) && write_script(d);
    if (ready) {
        complain("gdb -x %s", d->script);
        complain("or, in a debugger: target extended-remote %s", d->address);
        serve_all(d);
    }
    if (d->target) d->target->ops->close(d->target);
    remove_dir(d);
    return ready ? 0 : EXIT_OURS;
}

/* ---- with gdb ---- */

/* stdout may be somebody's who reads gdb/MI: gdb prints there, nobody else. */
static void leave_terminal(struct debug *d) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int printed = isatty(1) ? -1 : memfd_create("printed", MFD_CLOEXEC);
    setsid();
    if (null >= 0) dup2(null, 0);
    if (printed >= 0 && fcntl(printed, F_SETFL, O_APPEND) == 0 && dup2(printed, 1) == 1)
        d->printed = printed;
    else if (null >= 0 && !isatty(1))
        dup2(null, 1);
}

/* In the child. `ready` is told when gdb can start. */
static int serve_gdb(struct debug *d, int ready) {
    leave_terminal(d);
    set_end_signals();
    bool fine = open_target(d) && write_script(d) && write(ready, "", 1) == 1;
    close(ready);
    if (fine) serve_all(d);
    if (d->target) d->target->ops->close(d->target);
    remove_dir(d);
    return fine ? 0 : EXIT_OURS;
}

static int become_gdb(struct debug *d, const char *path) {
    const struct debug_order *o = d->order;
    size_t n = 0, given = 0;
    while (o->args && o->args[given]) given++;
    char **argv = calloc(given + 8, sizeof *argv);
    if (!argv) return EXIT_OURS;
    argv[n++] = (char *)o->debugger;
    argv[n++] = "-q";
    argv[n++] = "-x";
    argv[n++] = d->script;
    if (o->commands) {
        argv[n++] = "-x";
        argv[n++] = (char *)o->commands;
    }
    memcpy(argv + n, o->args ? o->args : (char *const *)argv, given * sizeof *argv);
    execv(path, argv);
    complain("%s: %s", path, strerror(errno));
    return EXIT_OURS;
}

static int with_gdb(struct debug *d) {
    char path[PATH_MAX], byte;
    int ready[2];
    if (find_command(d->order->debugger, path, sizeof path) != 0) return EXIT_OURS;
    if (!make_dir(d)) return EXIT_OURS;
    snprintf(d->address, sizeof d->address, "%s/gdb", d->dir);
    snprintf(d->script, sizeof d->script, "%s/commands", d->dir);
    d->listener = listen_path(d->address);
    d->gdb = getpid();
    pid_t child = d->listener < 0 || pipe2(ready, O_CLOEXEC) < 0 ? -1 : fork();
    if (child < 0) {
        complain("cannot serve gdb: %s", strerror(errno));
        remove_dir(d);
        return EXIT_OURS;
    }
    if (child == 0) {
        close(ready[0]);
        _exit(serve_gdb(d, ready[1]));
    }
    close(ready[1]);
    if (read(ready[0], &byte, 1) == 1) return become_gdb(d, path);
    waitpid(child, NULL, 0);
    return EXIT_OURS;
}

int debug(const struct debug_order *o) {
    static struct debug d;
    d = (struct debug){.order = o, .listener = -1};
    return o->serves ? serve_port(&d) : with_gdb(&d);
}
