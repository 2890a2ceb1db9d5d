/* Rings of packets (PACKET_RX_RING) while recording.
 * The kernel fills such a ring whenever packets come, so it is mapped for the runtime alone. What the program has mapped is memory of
 * its own, and what the kernel has handed over is copied there when the program makes a call, as an output of that call, or at a tick
 * point. What the program has given back is given to the kernel when it makes its next call.
 * Everything here happens with the turn. */
#ifndef REPRISE_PACKET_RING_H
#define REPRISE_PACKET_RING_H

#include "sphere/sys/model.h"

/* Some ring is mapped. */
extern bool packet_ring_any;

/* Whether setsockopt() asks for one. */
bool packet_ring_is(const uint64_t a[6]);
/* It has succeeded. */
void packet_ring_made(const uint64_t a[6]);
/* mode.map_kernels */
long packet_ring_map(const uint64_t a[6], int prot);
/* The program has other memory there now, or none; its ring has moved. */
void packet_ring_unmapped(gaddr start, size_t len);
void packet_ring_moved(gaddr from, gaddr to);

/* In front of a call: the kernel gets back what the program has done with. */
void packet_ring_return(void);
/* Behind a call: the program gets what is new. */
void packet_ring_take(void);
/* What the last packet_ring_take() wrote. */
void packet_ring_taken(struct writes *w);
/* At a tick point: the same for a program that waits without calls. */
void packet_ring_at_tick(struct thread *t);
/* Ticks until the next look. */
uint64_t packet_ring_budget(uint64_t n);

#endif
