/* What gdb is told when it starts: settings, our commands, where to connect. */
#ifndef REPRISE_CLI_GDB_SCRIPT_H
#define REPRISE_CLI_GDB_SCRIPT_H

#include <stdbool.h>
#include <stdio.h>

struct gdb_script {
    const char *address;           /* of the socket: a path, or host:port */
    const char *sysroot, *program; /* NULL: gdb asks for the files of the recording */
    bool quiet;
};

void gdb_script_write(const struct gdb_script *, FILE *);

#endif
