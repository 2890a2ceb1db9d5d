/* Shared memory that a process has from its parent and never owned: checkpoints do not have it. It is what it was when the process
 * began, and somebody stands there. */
#include <stdlib.h>
#include <string.h>

#include "log/snapshot.h"
#include "replay/timeline_parts.h"

#define PAGES_MOST (1ul << 18)

static bool add(struct stored *s, uint64_t address, const uint8_t *bytes) {
    if (s->n_inherited == s->inherited_room) {
        size_t room = s->inherited_room ? 2 * s->inherited_room : 64;
        struct stored_page *more = realloc(s->inherited, room * sizeof *more);
        if (!more) return false;
        s->inherited = more;
        s->inherited_room = room;
    }
    struct stored_page *p = &s->inherited[s->n_inherited++];
    p->address = address;
    memcpy(p->bytes, bytes, sizeof p->bytes);
    return s->n_inherited < PAGES_MOST;
}

static bool fetch(struct timeline *t, uint64_t object, uint64_t base) {
    struct worker *w = t->checkpoints[0];
    for (uint64_t page = 0;;) {
        uint64_t n = session_ask(&t->session, w, ASK_SHARED, object, page);
        const struct worker_shared *list = (const struct worker_shared *)session_slot(&t->session, w)->data;
        if (w->is_gone || n > WORKER_DATA / sizeof *list) return false;
        for (uint64_t i = 0; i < n; i++) {
            page = list[i].page;
            if (page >= SHARED_PAGES_ROOM / sizeof list->bytes) return true; /* cannot be saved, either */
            if (!add(&t->stored, base + page * sizeof list->bytes, list[i].bytes)) return false;
        }
        if (!n) return true;
        page++;
    }
}

bool inherited_fetch(struct timeline *t, size_t k) {
    size_t n;
    const struct snapshot_object *list = stored_objects(&t->stored, k, &n);
    if (t->stored.has_inherited) return true;
    for (size_t i = 0; i < n; i++)
        if ((list[i].flags & SNAPSHOT_INHERITED) && !fetch(t, list[i].object, SHARED_PAGES_AT + i * SHARED_PAGES_ROOM))
            return false;
    return t->stored.has_inherited = true;
}
