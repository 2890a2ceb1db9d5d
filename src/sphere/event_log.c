#include "sphere/event_log.h"

#include "engine/engine.h"
#include "inproc/str.h"
#include "sphere/channel.h"
#include "sphere/gate.h"

#define MEMORY_PIECE 32768u

uint32_t event_regs(const struct tblock *tb) {
    uint64_t h = tb->pc;
    for (int i = 0; i < 16; i++) h = (h ^ tb->gpr[i]) * 0x9e3779b97f4a7c15ull + (h >> 32);
    return (uint32_t)(h ^ h >> 32);
}

struct event *event_new(struct thread *t, enum event_kind kind, uint16_t code, size_t payload) {
    size_t size = (sizeof(struct event) + payload + 7) & ~7ul;
    struct event *e = stream_reserve(size);
    *e = (struct event){.kind = (uint8_t)kind,
                        .code = code,
                        .size = (uint32_t)size,
                        .thread = t->number,
                        .regs = event_regs(t->tb),
                        .ticks = ticks_total(t->tb)};
    return e;
}

/* A model's row may say too much: how far memory goes from addr on, looked up only where it matters. */
static uint64_t readable(gaddr addr, uint64_t len) {
    uint8_t byte;
    gaddr end = addr + len;
    if (len <= MEMORY_PIECE) return len;
    if (!guest_read(&byte, addr, 1)) return 0;
    for (gaddr at = PAGE_DOWN(addr) + PAGE_SIZE; at < end; at += PAGE_SIZE)
        if (!guest_read(&byte, at, 1)) return at - addr;
    return len;
}

uint32_t event_memory(struct thread *t, enum event_kind kind, gaddr addr, uint64_t len, bool count) {
    uint32_t n = 0;
    len = readable(addr, len);
    for (uint64_t off = 0; off < len; n++) {
        uint32_t piece = (uint32_t)MIN(len - off, (uint64_t)MEMORY_PIECE);
        if (!count) {
            struct event *e = event_new(t, kind, 0, sizeof(struct ev_memory) + piece);
            struct ev_memory *m = (struct ev_memory *)(e + 1);
            *m = (struct ev_memory){.addr = addr + off, .len = piece};
            ((uint8_t *)e)[e->size - 1] = 0;
            memset((uint8_t *)e + e->size - 8, 0, 8);
            long left =
                guest_copy(m + 1, (const void *)(addr + off), piece); /* the kernel did not get further either */
            m->len = piece - (uint32_t)left;
            memset((uint8_t *)(m + 1) + m->len, 0, (size_t)left);
        }
        off += piece;
    }
    return n;
}
