/* A debugger on a target: gdb at the terminal, or a port where one connects. */
#ifndef REPRISE_CLI_DEBUG_H
#define REPRISE_CLI_DEBUG_H

#include <stdbool.h>

#include "log/recording.h"
#include "rsp/position.h"
#include "rsp/target.h"

struct debug_order {
    enum goal goal; /* where to begin; GOAL_NONE: where the target stands */
    struct position at;
    bool quiet;
    bool serves; /* at `port`; starts no gdb */
    unsigned port;
    const char *debugger, *commands;   /* commands: a file for gdb; NULL: none */
    char *const *args;                 /* more of them for gdb; NULL-terminated */
    const struct recording *recording; /* whose files gdb may be told; NULL: it asks for them */
    const char *store;                 /* where their contents are */
    const char *about;                 /* for `info recording`; NULL: nothing to say */
    /* NULL: the user was told why. Called once, in the process that serves. */
    struct target *(*open)(void *arg);
    void *arg;
};

/* Returns the exit status, or does not return but becomes gdb. */
int debug(const struct debug_order *);

/* ---- debug_files.c ---- */

/* Where gdb finds the files of the recording: its `sysroot` and the path of the program in it. */
struct debug_files {
    char sysroot[4096], program[4096];
};

/* Files of this machine where they are the recorded ones, otherwise links below `dir` to what the store has. False: gdb must ask
 * for them. */
bool debug_files_find(struct debug_files *, const struct recording *, const char *store, const char *exe,
                      const char *dir);

#endif
