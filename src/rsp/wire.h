/* Packets of gdb's remote protocol on a socket: $BYTES#SUM, escapes, acknowledgements. Knows nothing of what packets mean.
 * The peer is not trusted: a packet that is too long, or anything between packets that is no part of the protocol, loses the
 * connection. One thread at a time uses a wire. */
#ifndef REPRISE_RSP_WIRE_H
#define REPRISE_RSP_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKET_MAX 0x20000 /* bytes between $ and #, escapes counted; gdb is told this */
#define WIRE_INTERRUPT 0x03

struct wire {
    int fd;
    bool acks;        /* until QStartNoAckMode */
    const char *lost; /* why nothing comes any more; NULL: still there */
    size_t at, end;   /* of what was read and not yet looked at */
    int64_t late_ms;  /* when an interrupt was found for which nothing ran any more; 0: never, or it was taken */
    uint8_t in[8192];
};

void wire_open(struct wire *, int fd);

/* The next packet, escapes removed, with a terminator behind it; to[PACKET_MAX + 1]. -1: the connection is lost. */
long wire_get(struct wire *, char *to);

/* Sends a packet; what needs escapes has them already (out_binary()). False: lost. */
bool wire_put(struct wire *, const char *bytes, size_t n);

/* While the program runs: waits until the peer asks to stop or is lost (true), or until stop_fd can be read (false). */
bool wire_wait_interrupt(struct wire *, int stop_fd);

/* An interrupt that came too late for the run it was meant for, a moment ago: it is meant for the next one, too. Taken by this. */
bool wire_take_late_interrupt(struct wire *);
/* Such a one was seen by wire_wait_interrupt(), but the program has stopped for something else. */
void wire_interrupt_was_late(struct wire *);

#endif
