#include "sphere/packet_ring.h"

#include <asm/stat.h>
#include <linux/if_packet.h>
#include <linux/mman.h>
#include <linux/stat.h>

#include "inproc/arena.h"
#include "inproc/fmt.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/event_log.h"
#include "sphere/forced_write.h"
#include "sphere/gate.h"

#define SOL_PACKET_ 263
#define MOST_RINGS 64
#define LOOK_TICKS 1000000ul /* some ms */

/* What is handed over at a time is an item: a frame, or a block of them (TPACKET_V3). Items go round: those from `tail` up to
 * `head` are the program's, the next one that the kernel hands over is `head`. */
struct ring {
    uint64_t ino; /* of the socket; 0: no ring */
    int version;
    uint32_t block_size, frame_size, in_block; /* items in a block */
    uint32_t own_bytes;                        /* of each block, for the program to use (TPACKET_V3) */
    uint64_t items, size;
    uint64_t head, tail; /* counted up forever */
    uint64_t taken;      /* items that the last look has found */
    gaddr guest;         /* 0: not mapped */
    uint8_t *kernel;
    uint8_t *is_back; /* a byte for each item: the kernel has it, though the one at `tail` is still in use */
};

bool packet_ring_any;
static struct ring rings[MOST_RINGS];

static struct ring *find(uint64_t ino) {
    for (struct ring *r = rings; r < rings + MOST_RINGS; r++)
        if (r->ino == ino) return r;
    return NULL;
}

/* One that is not in use; entries of sockets that were closed are never found again. */
static struct ring *unused(void) {
    static size_t next;
    struct ring *r = find(0);
    for (size_t i = 0; !r && i < MOST_RINGS; i++) {
        struct ring *other = &rings[next++ % MOST_RINGS];
        if (!other->guest) r = other;
    }
    return r;
}

static uint64_t socket_number(int fd) {
    struct stat st;
    return SYS(fstat, fd, &st) == 0 && (st.st_mode & S_IFMT) == S_IFSOCK ? st.st_ino : 0;
}

static int version_of(int fd) {
    int version = 0;
    uint32_t len = sizeof version;
    return SYS(getsockopt, fd, SOL_PACKET_, PACKET_VERSION, &version, &len) == 0 ? version : 0;
}

bool packet_ring_is(const uint64_t a[6]) { return (uint32_t)a[1] == SOL_PACKET_ && (uint32_t)a[2] == PACKET_RX_RING; }

void packet_ring_made(const uint64_t a[6]) {
    struct tpacket_req3 q = {0};
    uint64_t ino = socket_number((int)a[0]);
    struct ring *r = find(ino);
    if (!ino || !guest_read(&q, a[3], sizeof(struct tpacket_req))) return;
    if (r) r->ino = 0;
    if (!q.tp_block_nr || !q.tp_frame_size || !(r = r ? r : unused())) return;
    *r = (struct ring){.ino = ino,
                       .version = version_of((int)a[0]),
                       .block_size = q.tp_block_size,
                       .frame_size = q.tp_frame_size,
                       .in_block = 1,
                       .items = q.tp_block_nr,
                       .size = (uint64_t)q.tp_block_nr * q.tp_block_size};
    if (r->version == TPACKET_V3) {
        if ((uint32_t)a[4] >= sizeof q && guest_read(&q, a[3], sizeof q)) r->own_bytes = (q.tp_sizeof_priv + 7) & ~7u;
    } else {
        r->in_block = q.tp_block_size / q.tp_frame_size;
        r->items = q.tp_frame_nr;
    }
}

/* ---- items ---- */

static uint64_t place(const struct ring *r, uint64_t item) {
    uint64_t i = item % r->items;
    return i / r->in_block * r->block_size + i % r->in_block * r->frame_size;
}

static uint64_t status_at(const struct ring *r, uint64_t item) {
    size_t in_item = r->version == TPACKET_V3 ? offsetof(struct tpacket_block_desc, hdr.bh1.block_status)
                                              : 0; /* of the others, first */
    return place(r, item) + in_item;
}

static bool is_ready(const struct ring *r, uint64_t item) {
    return __atomic_load_n((uint32_t *)(r->kernel + status_at(r, item)), __ATOMIC_ACQUIRE) & TP_STATUS_USER;
}

/* The bytes of an item that the kernel writes: in two parts, between which there may be what is the program's own. */
struct parts {
    uint64_t first, second_at, end;
};

static struct parts parts_of(const struct ring *r, const uint8_t *item) {
    struct parts p = {0};
    if (r->version == TPACKET_V3) {
        const struct tpacket_block_desc *b = (const void *)item;
        p.first = sizeof *b;
        p.second_at = p.first + r->own_bytes;
        p.end = b->hdr.bh1.blk_len;
    } else if (r->version == TPACKET_V2) {
        const struct tpacket2_hdr *h = (const void *)item;
        p.end = MAX((uint64_t)h->tp_mac, TPACKET2_HDRLEN) + h->tp_snaplen;
    } else {
        const struct tpacket_hdr *h = (const void *)item;
        p.end = MAX((uint64_t)h->tp_mac, TPACKET_HDRLEN) + h->tp_snaplen;
    }
    p.end = MIN(p.end, r->version == TPACKET_V3 ? r->block_size : r->frame_size);
    p.first = MIN(p.first, p.end);
    p.second_at = MIN(MAX(p.second_at, p.first), p.end);
    return p;
}

static void hand_over(struct ring *r, uint64_t item) {
    const uint8_t *from = r->kernel + place(r, item);
    gaddr to = r->guest + place(r, item);
    struct parts p = parts_of(r, from);
    forced_fill(to, from, p.first);
    forced_fill(to + p.second_at, from + p.second_at, p.end - p.second_at);
}

/* ---- looks ---- */

/* False: it is still the program's. */
static bool give_back(struct ring *r, uint64_t item) {
    uint64_t at = status_at(r, item), status = 0, size = r->version == TPACKET_V1 ? 8 : 4;
    if (r->is_back[item % r->items]) return true; /* and may have come again meanwhile */
    if (!guest_read(&status, r->guest + at, size) || (status & TP_STATUS_USER)) return false;
    r->is_back[item % r->items] = 1;
    if (size == 8)
        __atomic_store_n((uint64_t *)(r->kernel + at), status, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint32_t *)(r->kernel + at), (uint32_t)status, __ATOMIC_RELEASE);
    return true;
}

/* The kernel takes items in order, so one behind another that is still in use can wait; but for the last one, by which poll() tells
 * whether there is anything to read. */
static void return_items(struct ring *r) {
    while (r->tail < r->head && give_back(r, r->tail)) r->tail++;
    if (r->tail < r->head) give_back(r, r->head - 1);
}

static void take_items(struct ring *r) {
    r->taken = 0;
    while (r->head - r->tail < r->items && is_ready(r, r->head)) {
        r->is_back[r->head % r->items] = 0;
        hand_over(r, r->head++);
        r->taken++;
    }
}

void packet_ring_return(void) {
    for (struct ring *r = rings; r < rings + MOST_RINGS; r++)
        if (r->guest) return_items(r);
}

void packet_ring_take(void) {
    for (struct ring *r = rings; r < rings + MOST_RINGS; r++)
        if (r->guest) take_items(r);
}

void packet_ring_taken(struct writes *w) {
    for (struct ring *r = rings; r < rings + MOST_RINGS; r++)
        for (uint64_t i = r->guest ? r->head - r->taken : r->head; i < r->head; i++) {
            gaddr at = r->guest + place(r, i);
            struct parts p = parts_of(r, (const uint8_t *)r->kernel + place(r, i));
            writes_range(w, at, p.first);
            writes_range(w, at + p.second_at, p.end - p.second_at);
        }
}

struct pokes {
    struct writes w;
    struct thread *t;
};

static void poke(struct writes *w, gaddr start, size_t len) {
    event_memory(((struct pokes *)w)->t, EV_POKE, start, len, false);
}

void packet_ring_at_tick(struct thread *t) {
    struct pokes p = {.w = {.range = poke}, .t = t};
    packet_ring_return();
    packet_ring_take();
    packet_ring_taken(&p.w);
}

uint64_t packet_ring_budget(uint64_t n) { return packet_ring_any ? MIN(n, LOOK_TICKS) : n; }

/* ---- mappings ---- */

static void free_kernels(struct ring *r) {
    arena_free_pages(r->kernel, r->size);
    arena_free_pages(r->is_back, r->items);
}

static void unmap(struct ring *r) {
    return_items(r);
    free_kernels(r);
    r->head = r->tail; /* whoever maps it again finds what was not given back */
    r->taken = 0;
    r->guest = 0;
    packet_ring_any = false;
    for (r = rings; r < rings + MOST_RINGS; r++) packet_ring_any |= r->guest != 0;
}

void packet_ring_unmapped(gaddr start, size_t len) {
    for (struct ring *r = rings; r < rings + MOST_RINGS; r++)
        if (r->guest && r->guest < start + len && r->guest + r->size > start) unmap(r);
}

void packet_ring_moved(gaddr from, gaddr to) {
    for (struct ring *r = rings; r < rings + MOST_RINGS; r++)
        if (r->guest == from) r->guest = to;
}

static long map_kernels(struct ring *r, int fd) {
    r->kernel = arena_try_pages(r->size);
    r->is_back = arena_try_pages(r->items);
    if (!r->kernel || !r->is_back) return -ENOMEM;
    long got = SYS(mmap, r->kernel, r->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    return sys_failed(got) ? got : 0;
}

static long refuse(void) {
    static bool said;
    if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
        say("memory that the kernel fills by itself (rings of performance events and the like) cannot be recorded: "
            "refused");
    return -ENODEV;
}

long packet_ring_map(const uint64_t a[6], int prot) {
    uint64_t ino = socket_number((int)a[4]);
    struct ring *r = ino ? find(ino) : NULL;
    if (!r || r->guest || (a[3] & MAP_TYPE) == MAP_PRIVATE) return refuse();
    if (a[5] || PAGE_UP(a[1]) != r->size) return -EINVAL;
    long ret = map_kernels(r, (int)a[4]);
    int flags = ((int)a[3] & ~MAP_TYPE) | MAP_PRIVATE | MAP_ANONYMOUS;
    if (!ret) ret = aspace_mmap(a[0], a[1], prot, flags, -1, 0);
    if (sys_failed(ret)) {
        free_kernels(r);
        return ret;
    }
    if (a[3] & MAP_FIXED) packet_ring_unmapped((gaddr)ret, a[1]); /* another one, that was there */
    r->guest = (gaddr)ret;
    packet_ring_any = true;
    return ret;
}
