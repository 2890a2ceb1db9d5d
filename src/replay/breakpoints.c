/* Break- and watchpoints of a timeline, and the conditions of breakpoints: kept here, and sent to workers before they run. */
#include <stdlib.h>
#include <string.h>

#include "replay/timeline_parts.h"

static uint64_t mixed(uint64_t h) {
    h *= 0xc2b2ae3d27d4eb4full;
    return h ^ h >> 31;
}

uint64_t timeline_hash_breaks(const struct timeline *t) {
    uint64_t sum = 0;
    for (size_t i = 0; i < t->n_breaks; i++) {
        const struct worker_break *b = &t->breaks[i];
        sum += mixed(b->addr ^ b->kind * 0x9e3779b97f4a7c15ull ^ mixed(b->len));
    }
    for (size_t i = 0; i + 8 <= t->conditions_len; i += 8) {
        uint64_t word;
        memcpy(&word, t->conditions + i, sizeof word);
        sum = mixed(sum ^ word);
    }
    return t->n_breaks ? sum | 1 : 0;
}

/* Pieces of a list that fit into a worker's slot; the last condition that begins in a piece is whole. */
static size_t condition_piece(const struct timeline *t, size_t from) {
    size_t n = 0;
    while (from + n < t->conditions_len) {
        struct worker_condition c;
        memcpy(&c, t->conditions + from + n, sizeof c);
        if (n + worker_condition_size(c.len) > WORKER_DATA) break;
        n += worker_condition_size(c.len);
    }
    return n;
}

static void send_conditions(struct timeline *t, struct worker *w, bool with) {
    size_t len = with ? t->conditions_len : 0, done = 0;
    do {
        size_t k = len ? condition_piece(t, done) : 0;
        if (k) memcpy(session_slot(&t->session, w)->data, t->conditions + done, k);
        session_ask(&t->session, w, ASK_CONDITIONS, k, done > 0);
        done += k;
    } while (done < len);
}

void breakpoints_arm(struct timeline *t, struct worker *w, bool with) {
    uint64_t wanted = with ? t->version : 0;
    if (w->breaks == wanted || w->is_gone) return;
    const size_t most = WORKER_DATA / sizeof(struct worker_break);
    size_t n = with ? t->n_breaks : 0, done = 0;
    do {
        size_t k = n - done < most ? n - done : most;
        if (k) memcpy(session_slot(&t->session, w)->data, t->breaks + done, k * sizeof *t->breaks);
        session_ask(&t->session, w, ASK_BREAKS, k, done > 0);
        done += k;
    } while (done < n);
    send_conditions(t, w, with);
    w->breaks = wanted;
}

static bool is_for_writes(const struct worker_break *b) {
    return b->kind == WORKER_BREAK_WRITE || b->kind == WORKER_BREAK_ACCESS;
}

size_t breakpoints_watched(struct timeline *t, uint8_t *to, size_t cap) {
    size_t n = 0;
    for (size_t i = 0; i < t->n_breaks; i++) {
        const struct worker_break *b = &t->breaks[i];
        if (!is_for_writes(b)) continue;
        if (b->len > cap - n) return 0;
        memset(to + n, 0, b->len);
        inspect_memory(&t->target, b->addr, to + n, b->len);
        n += b->len;
    }
    return n;
}

uint64_t breakpoints_watched_at(const struct timeline *t, size_t offset) {
    for (size_t i = 0; i < t->n_breaks; i++) {
        const struct worker_break *b = &t->breaks[i];
        if (!is_for_writes(b)) continue;
        if (offset < b->len) return b->addr + offset;
        offset -= b->len;
    }
    return 0;
}

bool breakpoints_set(struct target *target, enum break_kind kind, uint64_t addr, size_t len) {
    struct timeline *t = timeline_of(target);
    if (kind != BREAK_EXEC && !len) return false;
    if (t->n_breaks == t->breaks_room) {
        size_t room = t->breaks_room ? t->breaks_room * 2 : 64;
        void *p = realloc(t->breaks, room * sizeof *t->breaks);
        if (!p) return false;
        t->breaks = p;
        t->breaks_room = room;
    }
    t->breaks[t->n_breaks++] = (struct worker_break){addr, kind == BREAK_EXEC ? 1 : len, (uint32_t)kind, 0};
    t->version = timeline_hash_breaks(t);
    return true;
}

bool breakpoints_clear(struct target *target, enum break_kind kind, uint64_t addr, size_t len) {
    struct timeline *t = timeline_of(target);
    if (kind == BREAK_EXEC) len = 1;
    for (size_t i = 0; i < t->n_breaks; i++) {
        const struct worker_break *b = &t->breaks[i];
        if (b->addr != addr || b->len != len || b->kind != (uint32_t)kind) continue;
        t->breaks[i] = t->breaks[--t->n_breaks];
        t->version = timeline_hash_breaks(t);
        return true;
    }
    return false;
}

/* ---- conditions ---- */

static void forget_conditions(struct timeline *t, uint64_t addr) {
    size_t kept = 0;
    for (size_t i = 0; i < t->conditions_len;) {
        struct worker_condition c;
        memcpy(&c, t->conditions + i, sizeof c);
        size_t size = worker_condition_size(c.len);
        if (c.addr != addr) {
            memmove(t->conditions + kept, t->conditions + i, size);
            kept += size;
        }
        i += size;
    }
    t->conditions_len = kept;
}

static bool add_condition(struct timeline *t, uint64_t addr, const struct condition *c) {
    size_t size = worker_condition_size(c->n);
    if (c->n > UINT32_MAX || size > WORKER_DATA) return false;
    uint8_t *larger = realloc(t->conditions, t->conditions_len + size);
    if (!larger) return false;
    t->conditions = larger;
    struct worker_condition head = {addr, (uint32_t)c->n, 0};
    memset(larger + t->conditions_len, 0, size);
    memcpy(larger + t->conditions_len, &head, sizeof head);
    memcpy(larger + t->conditions_len + sizeof head, c->code, c->n);
    t->conditions_len += size;
    return true;
}

void breakpoints_set_conditions(struct target *target, uint64_t addr, const struct condition *list, size_t n) {
    struct timeline *t = timeline_of(target);
    forget_conditions(t, addr);
    for (size_t i = 0; i < n; i++)
        if (!add_condition(t, addr, &list[i])) { /* without them it stops more often than needed */
            forget_conditions(t, addr);
            break;
        }
    t->version = timeline_hash_breaks(t);
}

void timeline_clear_breaks(struct target *target) {
    struct timeline *t = timeline_of(target);
    t->n_breaks = t->conditions_len = 0;
    t->version = timeline_hash_breaks(t);
}
