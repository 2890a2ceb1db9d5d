/* reprise why: where a value came from. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/print.h"
#include "cli/replay_setup.h"
#include "replay/timeline.h"
#include "rsp/position.h"
#include "why/why.h"

static const char why_usage[] =
    "usage: reprise why [OPTIONS] [DIR|NAME] WHAT\n"
    "\n"
    "Says where a value of the recorded program (default: of the latest recording) came from: which instruction stored "
    "it,\n"
    "when, in which thread and line, what was there before; and, with -n, where that instruction had it from, through\n"
    "copies and registers, back to the system call, file and offset.\n"
    "\n"
    "WHAT is ADDRESS[:BYTES] (8 bytes if not said), $REGISTER, the name of a variable, or any expression that gdb "
    "finds in\n"
    "memory (accounts[3].owner; needs gdb).\n"
    "\n"
    "  --at POS   the value at this position, as `when` prints it in gdb; begin or end (the default)\n"
    "  -n N       follow it over N stores (default: 1)\n"
    "  -p PID     the process (default: the first; `reprise ps` lists them)\n"
    "  --json     one JSON object a line\n"
    "  --help     this text\n";

struct order {
    const char *words[2]; /* recording and what, or only what */
    size_t n_words;
    enum goal goal;
    struct position at;
    const char *at_text;
    uint64_t stores, pid;
    bool json;
};

/* -1: go on; otherwise the exit status. */
static int parse(struct order *o, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(a, "--help") == 0 || strcmp(a, "-h") == 0) {
            fputs(why_usage, stdout);
            return printed();
        } else if (strcmp(a, "--at") == 0) {
            if (!value || (o->goal = position_parse(value, &o->at)) == GOAL_NONE)
                return usage_error(&verb_why, "--at needs a position: EVENT[:TICKS[:STEPS]], begin or end");
            o->at_text = argv[++i];
        } else if (strcmp(a, "-n") == 0) {
            if (!value || !parse_u64(value, &o->stores) || !o->stores || o->stores > 10000)
                return usage_error(&verb_why, "-n needs a number");
            i++;
        } else if (strcmp(a, "-p") == 0) {
            if (!value || !parse_u64(value, &o->pid) || o->pid > INT_MAX)
                return usage_error(&verb_why, "-p needs a process");
            i++;
        } else if (strcmp(a, "--json") == 0) {
            o->json = true;
        } else if (a[0] == '-' && a[1]) {
            return usage_error(&verb_why, "unknown option '%s'", a);
        } else if (o->n_words < 2) {
            o->words[o->n_words++] = a;
        } else {
            return usage_error(&verb_why, "what is '%s'?", a);
        }
    }
    return o->n_words ? -1 : usage_error(&verb_why, "of what?");
}

/* In the child: gdb on the same recording, at the same place, says where the expression is. */
static void become_gdb(const struct order *o, int out) {
    char expression[1024], pid[24];
    const char *what = o->words[o->n_words - 1], *argv[16] = {"reprise", "replay", "-q"};
    size_t n = 3;
    snprintf(pid, sizeof pid, "%lu", o->pid);
    if (o->pid) argv[n++] = "-p", argv[n++] = pid;
    argv[n++] = "-g", argv[n++] = o->at_text;
    if (o->n_words == 2) argv[n++] = o->words[0];
    snprintf(expression, sizeof expression, "printf \"\\nplace %%lu %%lu\\n\", (unsigned long) &(%s), sizeof(%s)", what,
             what);
    argv[n++] = "--", argv[n++] = "-batch", argv[n++] = "-ex", argv[n++] = expression;
    int null = open("/dev/null", O_RDWR);
    if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(null, 2) < 0) _exit(EXIT_OURS);
    execv("/proc/self/exe", (char *const *)argv);
    _exit(EXIT_OURS);
}

static bool ask_gdb(const struct order *o, struct place *p) {
    int ends[2];
    bool found = false;
    char *line = NULL;
    size_t cap = 0;
    if (strpbrk(o->words[o->n_words - 1], "\"\\\n") || pipe2(ends, O_CLOEXEC) < 0) return false;
    pid_t child = fork();
    if (child == 0) become_gdb(o, ends[1]);
    close(ends[1]);
    FILE *from = fdopen(ends[0], "r");
    while (from && child > 0 && getline(&line, &cap, from) > 0)
        if (sscanf(line, "place %lu %zu", &p->addr, &p->len) == 2) found = p->len && p->addr + p->len > p->addr;
    free(line);
    if (from) fclose(from);
    if (child > 0) waitpid(child, NULL, 0);
    p->is_register = false;
    return found;
}

static int answer(const struct order *o, struct target *t, const struct recording *r) {
    const char *what = o->words[o->n_words - 1];
    struct why_question q = {.target = t,
                             .recording = r,
                             .stream = timeline_stream(t),
                             .program = timeline_program(t),
                             .stores = (unsigned)o->stores};
    struct why w;
    struct stop at = goal_reach(t, o->goal, o->at);
    if (at.reason == STOP_FAILED) {
        complain("%.*s", (int)sizeof at.text - 1, at.text);
        return EXIT_OURS;
    }
    if (!why_parse_place(t, what, &q.place) && !ask_gdb(o, &q.place)) {
        complain("'%s' is no address, register or variable there, nor does gdb know where it is", what);
        return EXIT_OURS;
    }
    if (!why_ask(&w, &q)) {
        complain("the recording cannot be searched from there");
        return EXIT_OURS;
    }
    if (o->json)
        why_print_json(&w, stdout);
    else
        why_print(&w, stdout);
    why_free(&w);
    return printed();
}

static int why_main(int argc, char **argv) {
    static struct replay_setup setup;
    struct order o = {.goal = GOAL_END, .at_text = "end", .stores = 1};
    char why[WHY_MAX] = "";
    int status = parse(&o, argc, argv);
    if (status >= 0) return status;
    if (!replay_set_up(&setup, o.n_words == 2 ? o.words[0] : NULL, true, false, NULL)) return EXIT_OURS;
    uint64_t program = o.at.event >> POSITION_PROGRAM;
    o.at.event -= program << POSITION_PROGRAM;
    struct timeline_options options = {.recording = setup.recording,
                                       .pid = (int)o.pid,
                                       .program = o.goal == GOAL_END ? 0 : (int)program + 1,
                                       .quiet = true,
                                       .store = setup.store,
                                       .options = &setup.options};
    struct target *t = timeline_open(&options, why, sizeof why);
    if (!t) {
        complain("%s", why);
        return EXIT_OURS;
    }
    status = answer(&o, t, setup.recording);
    t->ops->close(t);
    return status;
}

const struct verb verb_why = {"why", "where a value of a recording came from", why_usage, why_main};
