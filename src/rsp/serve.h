/* One connection of a debugger, from its first packet to its last. */
#ifndef REPRISE_RSP_SERVE_H
#define REPRISE_RSP_SERVE_H

#include "rsp/target.h"

enum served {
    SERVED_LEFT,   /* it detached or went away: another one may come */
    SERVED_KILLED, /* it wants the program gone */
};

/* *at: how the target came to where it stands; afterwards where it was left. `about`: for `info recording`, may be NULL.
 * `printed`: a file that the target's processes print to, for the debugger to show; 0: none. `fd` stays open. */
enum served serve(int fd, struct target *, struct stop *at, const char *about, int printed);

#endif
