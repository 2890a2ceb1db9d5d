/* Taker: the controller's thread that takes checkpoints out of the areas and puts them into the stores of a recording.
 *
 * record:  taker_start() when the channel is there; taker_stop() when all processes are gone (or recording stops), before the
 * log is closed. A checkpoint whose END was put before is stored by then. A full disk ends checkpoints, not the recording. */
#ifndef REPRISE_CKPT_TAKER_H
#define REPRISE_CKPT_TAKER_H

#include "ckpt/area.h"
#include "ckpt/store.h"

struct taker;

/* channel: as mapped by the controller, fd: its memfd. Stores are made in dir, each with the first checkpoint of its stream.
 * NULL: no thread, or the memfd has no areas (then runtimes take none). */
struct taker *taker_start(struct channel *channel, int fd, const char *dir);
/* Takes what is complete, gives up what is not. *why: "" or the first thing that went wrong. */
void taker_stop(struct taker *, char *why);

#endif
