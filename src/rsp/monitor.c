/* gdb's `monitor` commands. Those that concern the recording are the target's; positions and checkpoints, which are names of
 * positions, are here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rsp/packets.h"

#define TARGET_TEXT 65536

/* A command that moves only says where to: the next resumption goes there, so that gdb sees a stop like any other and forgets
 * what it knew of registers and memory. */
static bool set_goal(struct gdb *g, enum goal goal, struct position at) {
    g->goal = goal;
    g->goal_at = at;
    return true;
}

static bool do_seek(struct gdb *g, const char *args, struct out *o) {
    struct position at = {0};
    enum goal goal = position_parse(args, &at);
    if (goal != GOAL_NONE) return set_goal(g, goal, at);
    out_str(o, "A position is EVENT[:TICKS[:STEPS]] as `when` prints it, or `begin`, or `end`.\n");
    return false;
}

/* A call has written the return address of its callee: that is how it is found again, whatever gdb knows of the functions. */
static bool do_call(struct gdb *g, const char *args, struct out *o) {
    char *end;
    uint64_t slot = strtoull(args, &end, 16);
    if (!*args || g->goal == GOAL_CALL) g->goal = GOAL_NONE;
    if (!*args) return true;
    if (end == args || *end) {
        out_str(o, "`call ADDRESS`: reverse-continue leads back to the call whose return address is there.\n");
        return false;
    }
    g->goal_slot = slot;
    return set_goal(g, GOAL_CALL, (struct position){0});
}

static bool do_when(struct gdb *g, const char *args, struct out *o) {
    char text[POSITION_TEXT];
    bool has_left = g->target->ops->has_left && g->target->ops->has_left(g->target);
    out_format(o, "Position %s, thread %d%s\n", position_text(g->target->ops->where(g->target), text),
               g->target->ops->current_thread(g->target),
               has_left ? "; the program was sent elsewhere from there, in a copy: going back ends that" : "");
    return true;
}

static bool do_checkpoint(struct gdb *g, const char *args, struct out *o) {
    char text[POSITION_TEXT];
    for (int i = 1; i < CHECKPOINTS_MAX; i++) {
        if (g->checkpoints[i].used) continue;
        g->checkpoints[i] = (struct checkpoint){true, g->target->ops->where(g->target)};
        out_format(o, "Checkpoint %d at %s\n", i, position_text(g->checkpoints[i].at, text));
        return true;
    }
    out_str(o, "There are too many checkpoints.\n");
    return false;
}

static struct checkpoint *find_checkpoint(struct gdb *g, const char *args, struct out *o) {
    char *end;
    long n = strtol(args, &end, 10);
    if (end != args && !*end && n > 0 && n < CHECKPOINTS_MAX && g->checkpoints[n].used) return &g->checkpoints[n];
    out_format(o, "No checkpoint %.20s.\n", args);
    return NULL;
}

static bool do_restart(struct gdb *g, const char *args, struct out *o) {
    if (!*args) return set_goal(g, GOAL_BEGIN, (struct position){0});
    struct checkpoint *c = find_checkpoint(g, args, o);
    return c && set_goal(g, GOAL_POSITION, c->at);
}

static bool do_delete(struct gdb *g, const char *args, struct out *o) {
    struct checkpoint *c = find_checkpoint(g, args, o);
    if (c) c->used = false;
    return true; /* it is not there: that was said, and gdb's own words for a failure would only confuse */
}

static bool do_list(struct gdb *g, const char *args, struct out *o) {
    char text[POSITION_TEXT];
    bool any = false;
    for (int i = 1; i < CHECKPOINTS_MAX; i++) {
        if (!g->checkpoints[i].used) continue;
        out_format(o, "%d  %s\n", i, position_text(g->checkpoints[i].at, text));
        any = true;
    }
    if (!any) out_str(o, "No checkpoints.\n");
    return true;
}

static bool do_exits(struct gdb *g, const char *args, struct out *o) {
    bool end = strcmp(args, "end") == 0;
    if (!end && strcmp(args, "stop") != 0) {
        out_str(o, "`exits end`: gdb sees the process exit; `exits stop`: it stops there and can go back.\n");
        return false;
    }
    g->exits_end = end;
    return true;
}

static bool do_forks(struct gdb *g, const char *args, struct out *o) {
    bool on = strcmp(args, "on") == 0;
    if (!on && strcmp(args, "off") != 0) {
        out_str(o, "`forks on`: stops where the program makes a process, and tells gdb; `forks off`: does not.\n");
        return false;
    }
    g->catches.forks = on;
    g->target->ops->want_catches(g->target, &g->catches);
    return true;
}

/* For a hook: gdb would begin to record the replay. */
static bool do_record(struct gdb *g, const char *args, struct out *o) {
    out_str(o, "This is a recording: reverse-step, reverse-continue and their like need no `record`.\n");
    return false;
}

static bool do_status(struct gdb *g, const char *args, struct out *o) {
    char text[POSITION_TEXT];
    position_text(g->target->ops->where(g->target), text);
    switch (g->last.reason) {
    case STOP_EXITED:
        out_format(o, "At the end (%s): the process exits with status %d.\n", text, g->last.status);
        break;
    case STOP_KILLED: out_format(o, "At the end (%s): killed by signal %d.\n", text, g->last.signo); break;
    case STOP_SIGNAL: out_format(o, "At %s, in front of signal %d.\n", text, g->last.signo); break;
    case STOP_END: out_format(o, "At the end of the recording (%s).\n", text); break;
    case STOP_BEGIN: out_format(o, "At the begin of the recording (%s).\n", text); break;
    case STOP_FAILED:
        out_format(o, "At %s; the replay failed: %.*s\n", text, (int)sizeof g->last.text - 1, g->last.text);
        break;
    default: out_format(o, "At %s.\n", text);
    }
    return true;
}

static bool do_recording(struct gdb *g, const char *args, struct out *o) {
    if (g->about) out_str(o, g->about);
    return do_status(g, args, o);
}

static bool do_help(struct gdb *g, const char *args, struct out *o);

/* For commands in gdb that say themselves what went wrong: gdb has but one message for monitor commands that fail. */
static bool do_try(struct gdb *g, const char *args, struct out *o) {
    while (strncmp(args, "try ", 4) == 0) /* however often it is said */
        args += 4 + strspn(args + 4, " ");
    monitor_command(g, args, o);
    return true;
}

static const struct {
    const char *name;
    bool (*act)(struct gdb *, const char *args, struct out *);
    bool target_first; /* the target may know more */
    const char *help;
} commands[] = {
    {"when", do_when, false, "when: the position"},
    {"status", do_status, false, "status: the position, and what happens there"},
    {"seek", do_seek, false, "seek POS: the next resumption (stepi) leads to POS: EVENT[:TICKS[:STEPS]], begin or end"},
    {"call", do_call, false,
     "call ADDRESS: reverse-continue leads back to the call whose return address is there; call: not any more"},
    {"checkpoint", do_checkpoint, false, "checkpoint: gives the position a number"},
    {"info checkpoints", do_list, false, "info checkpoints: lists them"},
    {"delete checkpoint", do_delete, false, "delete checkpoint N"},
    {"restart", do_restart, false, "restart [N]: the next resumption leads to checkpoint N, or to the begin"},
    {"info recording", do_recording, true, "info recording: what is recorded, and where one is in it"},
    {"exits", do_exits, false, "exits end|stop: what gdb sees when the process exits"},
    {"forks", do_forks, false, "forks on|off: whether gdb sees processes being made (`catch fork`)"},
    {"try", do_try, false, "try COMMAND: the same, but never fails; says why it would have"},
    {"record", do_record, false, "record: says that there is nothing more to record"},
    {"help", do_help, true, "help: this text"},
};
#define COMMANDS (sizeof commands / sizeof *commands)

static bool do_help(struct gdb *g, const char *args, struct out *o) {
    for (size_t i = 0; i < COMMANDS; i++) out_format(o, "%s\n", commands[i].help);
    return true;
}

static bool ask_target(struct gdb *g, const char *text, struct out *o) {
    char *answer = calloc(1, TARGET_TEXT);
    bool known = answer && g->target->ops->command(g->target, text, answer, TARGET_TEXT);
    if (known) out_bytes(o, answer, strnlen(answer, TARGET_TEXT));
    free(answer);
    return known;
}

/* Behind `detach`, or an `attach` that failed. */
static bool say_no_process(struct gdb *g, struct out *o) {
    if (g->about) out_str(o, g->about);
    out_str(o, "No process is debugged now: `attach PID` chooses one.\n");
    return true;
}

bool monitor_command(struct gdb *g, const char *text, struct out *o) {
    if (!g->attached) return say_no_process(g, o);
    while (*text == ' ') text++;
    for (size_t i = 0; i < COMMANDS; i++) {
        size_t n = strlen(commands[i].name);
        if (strncmp(text, commands[i].name, n) != 0 || (text[n] && text[n] != ' ')) continue;
        if (commands[i].target_first && ask_target(g, text, o)) return true;
        const char *args = text + n;
        while (*args == ' ') args++;
        return commands[i].act(g, args, o);
    }
    if (ask_target(g, text, o)) return true;
    out_format(o, "Unknown command: %.100s; `monitor help` lists those there are.\n", text);
    return true; /* it was answered */
}
