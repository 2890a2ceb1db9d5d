#include "replay/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/snapshot.h"
#include "replay/programs.h"
#include "replay/stored.h"

/* Pages of a shared object that the target has told of: all from `first` to below `end`, where those that are zero are not listed. */
struct known {
    uint64_t object, first, end;
    size_t n;
    struct worker_shared pages[TIMELINE_SHARED];
};

struct verifier {
    struct timeline_options options;
    char *why;
    size_t cap;
    struct known known; /* in the place that is being compared */
};

static bool is_same(const struct ckpt_restored *page, const uint8_t *bytes, uint64_t *at) {
    for (uint64_t left = page->blocks; left; left &= left - 1) {
        *at = (uint64_t)__builtin_ctzll(left) * CKPT_BLOCK;
        if (memcmp(page->bytes + *at, bytes + *at, CKPT_BLOCK) != 0) return false;
    }
    return true;
}

static bool is_zero(const uint8_t *bytes) {
    for (size_t i = 0; i < CKPT_PAGE; i++)
        if (bytes[i]) return false;
    return true;
}

/* Anonymous memory that was unmapped since is still in the store, and means nothing. */
static bool may_be_gone(const struct stored *s, size_t k, uint64_t address, const uint8_t *bytes) {
    size_t n, slot = (address - SHARED_PAGES_AT) / SHARED_PAGES_ROOM;
    const struct snapshot_object *list = address < SHARED_PAGES_AT ? NULL : stored_objects(s, k, &n);
    return list && slot < n && !(list[slot].object >> 63) && is_zero(bytes);
}

/* The target is asked for what follows, too: asked page by page it would look for the next one that is not zero each time. */
static bool learn(struct known *k, struct target *t, uint64_t object, uint64_t page) {
    k->object = object;
    k->first = page;
    k->n = timeline_read_shared(t, object, page, k->pages);
    if (k->n > TIMELINE_SHARED) return false;
    k->end = k->n == TIMELINE_SHARED ? k->pages[k->n - 1].page + 1 : UINT64_MAX;
    return true;
}

static bool read_shared(struct known *k, struct target *t, uint64_t object, uint64_t page, uint8_t *bytes) {
    bool is_known = k->object == object && page >= k->first && page < k->end;
    if (!is_known && !learn(k, t, object, page)) return false;
    memset(bytes, 0, CKPT_PAGE);
    for (size_t i = 0; i < k->n; i++)
        if (k->pages[i].page == page) memcpy(bytes, k->pages[i].bytes, CKPT_PAGE);
    return true;
}

/* Shared memory has addresses of its own in the store. */
static bool read_page(struct verifier *v, struct target *t, const struct stored *s, size_t k, uint64_t address,
                      uint8_t *bytes) {
    size_t n, slot = (address - SHARED_PAGES_AT) / SHARED_PAGES_ROOM;
    if (address < SHARED_PAGES_AT) return t->ops->read_memory(t, address, bytes, CKPT_PAGE) == CKPT_PAGE;
    const struct snapshot_object *list = stored_objects(s, k, &n);
    return slot < n && read_shared(&v->known, t, list[slot].object, address % SHARED_PAGES_ROOM / CKPT_PAGE, bytes);
}

/* The target stands at the place of checkpoint k. */
static bool compare(struct verifier *v, struct target *t, const struct stored *s, size_t k) {
    static struct ckpt_restored page;
    uint8_t bytes[CKPT_PAGE];
    struct ckpt_cursor c;
    uint64_t at = 0;
    v->known.end = 0; /* nothing, yet */
    for (ckpt_pages(s->store, k, &c); ckpt_next(&c, &page);) {
        bool is_there = read_page(v, t, s, k, page.address, bytes);
        if (is_there && (is_same(&page, bytes, &at) || may_be_gone(s, k, page.address, bytes))) continue;
        struct position p = stored_place(s, k);
        snprintf(v->why, v->cap,
                 "process %d at %" PRIu64 ":%" PRIu64 ": %s %#" PRIx64 " is not what its checkpoint has",
                 v->options.pid, p.event, p.ticks, is_there ? "memory at" : "nothing at", page.address + at);
        return false;
    }
    if (c.why[0]) snprintf(v->why, v->cap, "process %d: %s", v->options.pid, c.why);
    return !c.why[0];
}

static bool go_to(const struct verifier *v, struct target *t, struct position p) {
    struct stop s = t->ops->seek(t, p);
    if (s.reason == STOP_FAILED) snprintf(v->why, v->cap, "process %d: %s", v->options.pid, s.text);
    return s.reason != STOP_FAILED;
}

static bool verify_all(struct verifier *v, struct target *t, const struct stored *s) {
    for (size_t k = 0; k < stored_count(s); k++) {
        struct position p = stored_place(s, k);
        if (stored_before(s, p) != k) break; /* the recording was cut off in front of it */
        if (!go_to(v, t, p) || !compare(v, t, s, k)) return false;
    }
    return true;
}

static bool verify_program(struct verifier *v, uint64_t stream) {
    struct stored s;
    stored_open(&s, v->options.recording, stream);
    bool fine = true;
    if (s.store && ckpt_damage(s.store)[0]) {
        snprintf(v->why, v->cap, "process %d: %s", v->options.pid, ckpt_damage(s.store));
        fine = false;
    }
    struct target *t = fine && stored_count(&s) ? timeline_open(&v->options, v->why, v->cap) : NULL;
    if (t) {
        fine = verify_all(v, t, &s);
        t->ops->close(t);
    } else if (stored_count(&s)) {
        fine = false;
    }
    stored_close(&s);
    return fine;
}

static bool has_checkpoints(const struct recording *r, uint64_t stream) {
    struct stored s;
    stored_open(&s, r, stream);
    bool has = s.store && (stored_count(&s) || ckpt_damage(s.store)[0]);
    stored_close(&s);
    return has;
}

bool verify_checkpoints(const struct timeline_options *o, char *why, size_t cap) {
    struct verifier v = {.options = *o, .why = why, .cap = cap};
    v.options.from_start = v.options.quiet = true;
    bool fine = true;
    for (size_t i = 0; fine && i < o->recording->n_streams; i++) {
        struct program *all;
        uint64_t stream = o->recording->streams[i].number;
        if (!has_checkpoints(o->recording, stream)) continue; /* most: finding a program looks at all streams */
        v.options.pid = programs_pid(o->recording, stream);
        size_t n = v.options.pid ? programs_find(o->recording, &v.options.pid, &all, why, cap) : 0;
        for (size_t k = 0; k < n; k++) {
            v.options.program = (int)k + 1;
            if (all[k].stream == stream) fine = verify_program(&v, stream);
        }
        if (n) free(all);
        if (fine) why[0] = '\0';
    }
    return fine;
}
