/* Pages of the memory of workers that were read a moment ago: debuggers read a stack in little pieces, and ask a process for each. */
#include <stdlib.h>
#include <string.h>

#include "replay/timeline_parts.h"

#define PAGE 4096ul
#define PAGES 16

struct memory {
    struct {
        uint64_t state, addr; /* of the worker; 0: none */
        uint8_t bytes[PAGE];
    } pages[PAGES];
    size_t next;
};

bool memory_open(struct timeline *t) {
    t->memory = calloc(1, sizeof *t->memory);
    return t->memory != NULL;
}

void memory_close(struct timeline *t) { free(t->memory); }

/* NULL: it cannot be read. */
static const uint8_t *page_of(struct timeline *t, struct worker *w, uint64_t addr) {
    struct memory *m = t->memory;
    for (size_t i = 0; i < PAGES; i++)
        if (m->pages[i].state == w->state && m->pages[i].addr == addr) return m->pages[i].bytes;
    if (session_ask(&t->session, w, ASK_READ, addr, PAGE) != PAGE) return NULL;
    size_t i = m->next++ % PAGES;
    m->pages[i].state = w->state;
    m->pages[i].addr = addr;
    memcpy(m->pages[i].bytes, session_slot(&t->session, w)->data, PAGE);
    return m->pages[i].bytes;
}

static size_t read_at_once(struct timeline *t, struct worker *w, uint64_t addr, uint8_t *to, size_t n) {
    size_t done = 0;
    while (done < n) {
        size_t want = n - done < WORKER_DATA ? n - done : WORKER_DATA;
        uint64_t got = session_ask(&t->session, w, ASK_READ, addr + done, want);
        if (got > want) break;
        memcpy(to + done, session_slot(&t->session, w)->data, got);
        done += got;
        if (got < want) break;
    }
    return done;
}

size_t memory_read(struct timeline *t, struct worker *w, uint64_t addr, void *to, size_t n) {
    size_t done = 0;
    if (n > PAGE) return read_at_once(t, w, addr, to, n);
    while (done < n) {
        uint64_t at = addr + done, inside = at % PAGE, k = PAGE - inside < n - done ? PAGE - inside : n - done;
        const uint8_t *page = page_of(t, w, at - inside);
        if (!page) break;
        memcpy((uint8_t *)to + done, page + inside, k);
        done += k;
    }
    return done;
}
