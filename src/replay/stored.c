#include "replay/stored.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "log/image.h"
#include "log/snapshot.h"
#include "replay/write_at.h"

#define BATCH 256 /* pages written at once */

void stored_open(struct stored *s, const struct recording *r, uint64_t stream) {
    char why[WHY_MAX];
    const struct stream_ref *ref = recording_stream(r, stream);
    *s = (struct stored){.stream_len = ref ? ref->raw_len : 0};
    if (r->dir) s->store = ckpt_open(r->dir, stream, why);
}

void stored_close(struct stored *s) {
    if (s->store) ckpt_close(s->store);
    free(s->inherited);
    *s = (struct stored){.stream_len = s->stream_len};
}

size_t stored_count(const struct stored *s) { return s->store ? ckpt_count(s->store) : 0; }

struct position stored_place(const struct stored *s, size_t i) {
    struct ckpt_info info;
    if (!ckpt_info(s->store, i, &info)) return (struct position){0, 0, 0};
    return (struct position){info.place.event, info.place.ticks, 0};
}

/* Its CHECKPOINT event is there: the recording was not cut off in front of it. */
static bool is_usable(const struct stored *s, size_t i) {
    size_t len;
    const struct snapshot *state = ckpt_state(s->store, i, &len);
    return state && len >= sizeof *state && state->magic == SNAPSHOT_MAGIC && state->position <= s->stream_len;
}

size_t stored_before(const struct stored *s, struct position p) {
    size_t i = s->store ? ckpt_before(s->store, p.event, p.ticks) : STORED_NONE;
    while (i != STORED_NONE && !is_usable(s, i)) i = i ? i - 1 : STORED_NONE;
    return i;
}

const struct snapshot_object *stored_objects(const struct stored *s, size_t i, size_t *n) {
    size_t len;
    const struct snapshot *state = ckpt_state(s->store, i, &len);
    *n = 0;
    if (!state || len < sizeof *state || state->magic != SNAPSHOT_MAGIC) return NULL;
    if (state->n_objects > SNAPSHOT_OBJECTS_MAX || state->n_owned > SNAPSHOT_OWNED_MAX) return NULL;
    size_t size = state->n_objects * sizeof(struct snapshot_object);
    size_t behind = state->n_owned * sizeof(struct snapshot_owned) + state->filters_len;
    if (state->filters_len > SNAPSHOT_FILTERS_MAX || size + behind > len - sizeof *state) return NULL;
    *n = state->n_objects;
    return (const struct snapshot_object *)((const uint8_t *)state + (len - behind - size));
}

/* ---- images ---- */

struct image {
    int fd;
    uint64_t pages; /* where they begin */
    struct image_page *table;
    size_t n, room;
    uint8_t batch[BATCH][IMAGE_PAGE];
};

static bool flush(struct image *m) {
    size_t k = m->n % BATCH ? m->n % BATCH : m->n ? BATCH : 0;
    return !k || write_at(m->fd, m->batch, k * IMAGE_PAGE, m->pages + (m->n - k) * IMAGE_PAGE);
}

static bool add_page(struct image *m, uint64_t address, uint64_t blocks, const void *bytes) {
    if (m->n && m->n % BATCH == 0 && !flush(m)) return false;
    if (m->n == m->room) {
        size_t room = m->room ? 2 * m->room : 4096;
        struct image_page *more = realloc(m->table, room * sizeof *more);
        if (!more) return false;
        m->table = more;
        m->room = room;
    }
    memcpy(m->batch[m->n % BATCH], bytes, IMAGE_PAGE);
    m->table[m->n++] = (struct image_page){address, blocks};
    return true;
}

static bool fill(struct image *m, const struct stored *s, size_t i) {
    static struct ckpt_restored page;
    struct ckpt_cursor c;
    size_t len;
    const void *state = ckpt_state(s->store, i, &len);
    if (!state) return false;
    m->pages = image_pages(len);
    for (size_t k = 0; k < s->n_inherited; k++)
        if (!add_page(m, s->inherited[k].address, ~0ull, s->inherited[k].bytes)) return false;
    for (ckpt_pages(s->store, i, &c); ckpt_next(&c, &page);)
        if (!add_page(m, page.address, page.blocks, page.bytes)) return false;
    struct image_head head = {IMAGE_MAGIC, len, m->n};
    return !c.why[0] && flush(m) && write_at(m->fd, &head, sizeof head, 0) &&
           write_at(m->fd, state, len, sizeof head) &&
           write_at(m->fd, m->table, m->n * sizeof *m->table, image_table(len, m->n));
}

int stored_image(const struct stored *s, size_t i) {
    struct image *m = calloc(1, sizeof *m);
    if (!m) return -1;
    int fd = m->fd = memfd_create("reprise-image", MFD_CLOEXEC);
    if (fd >= 0 && !fill(m, s, i)) {
        close(fd);
        fd = -1;
    }
    free(m->table);
    free(m);
    return fd;
}
