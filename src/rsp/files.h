/* vFile packets: files of the recording, and what /proc says of the recorded process. Never a file of this machine. */
#ifndef REPRISE_RSP_FILES_H
#define REPRISE_RSP_FILES_H

#include "rsp/target.h"
#include "rsp/text.h"

#define FILES_MAX 64

struct files {
    int fds[FILES_MAX]; /* plus one: 0 is none */
};

void files_close_all(struct files *);
/* `in` stands behind "vFile:". */
void files_packet(struct files *, struct target *, struct in *in, struct out *reply);

#endif
