/* Break- and watchpoints as gdb set them. */
#include "rsp/breaks.h"

#include <stdlib.h>
#include <string.h>

#define BREAKS_MAX (1u << 20)
#define CONDITIONS_MAX 64
#define CONDITION_BYTES 65536
#define ACCESS_MAX 64 /* bytes of the widest access: it may begin before what is watched */

static enum break_kind kind_of(unsigned type) {
    static const enum break_kind kinds[] = {BREAK_EXEC, BREAK_EXEC, BREAK_WRITE, BREAK_READ, BREAK_ACCESS};
    return kinds[type];
}

static size_t first_slot(const struct breaks *b, uint64_t addr) {
    return (addr * 0x9e3779b97f4a7c15ull >> 32) & (b->n_slots - 1);
}

static struct break_set *find(const struct breaks *b, unsigned type, uint64_t addr, uint64_t len) {
    if (!b->n_slots) return NULL;
    for (size_t i = first_slot(b, addr); b->slots[i].used; i = (i + 1) & (b->n_slots - 1)) {
        struct break_set *s = &b->slots[i];
        if (s->type == type && s->addr == addr && s->len == len) return s;
    }
    return NULL;
}

static void put(struct breaks *b, struct break_set set) {
    size_t i = first_slot(b, set.addr);
    while (b->slots[i].used) i = (i + 1) & (b->n_slots - 1);
    b->slots[i] = set;
}

/* Never more than half full. */
static bool grow(struct breaks *b) {
    if (b->n_used < b->n_slots / 2) return true;
    struct breaks larger = *b;
    larger.n_slots = b->n_slots ? 2 * b->n_slots : 64;
    if (larger.n_slots > 2 * BREAKS_MAX) return false;
    larger.slots = calloc(larger.n_slots, sizeof *larger.slots);
    if (!larger.slots) return false;
    for (size_t i = 0; i < b->n_slots; i++)
        if (b->slots[i].used) put(&larger, b->slots[i]);
    free(b->slots);
    *b = larger;
    return true;
}

/* Closes the gap that a removed entry leaves, so that what lies behind it is still found. */
static void take_out(struct breaks *b, struct break_set *s) {
    size_t mask = b->n_slots - 1, i = (size_t)(s - b->slots);
    s->used = false;
    for (size_t j = (i + 1) & mask; b->slots[j].used; j = (j + 1) & mask) {
        size_t home = first_slot(b, b->slots[j].addr);
        if (((j - home) & mask) < ((j - i) & mask)) continue;
        b->slots[i] = b->slots[j];
        b->slots[j].used = false;
        i = j;
    }
}

/* ---- conditions ---- */

static void free_conditions(struct condition *all, size_t n) {
    for (size_t i = 0; i < n; i++) free(all[i].code);
    free(all);
}

/* ;XLEN,BYTES... and then perhaps ;cmds:..., which nobody asked for. */
static bool parse_conditions(struct in *in, struct condition **all, size_t *n) {
    *all = NULL;
    *n = 0;
    uint64_t len;
    if (in_is_empty(in)) return true;
    if (!in_char(in, ';')) return false;
    for (;;) {
        in_char(in, ';');
        if (!in_char(in, 'X')) break;
        if (!in_hex(in, &len) || !in_char(in, ',') || len > CONDITION_BYTES || *n == CONDITIONS_MAX ||
            (uint64_t)(in->end - in->at) < 2 * len)
            goto bad;
        struct condition *more = realloc(*all, (*n + 1) * sizeof *more);
        if (!more) goto bad;
        *all = more;
        more[*n] = (struct condition){malloc(len + 1), len};
        struct in bytes = {in->at, in->at + 2 * len};
        if (!more[(*n)++].code || in_bytes(&bytes, more[*n - 1].code, len) < 0) goto bad;
        in->at = bytes.end;
    }
    if (in_is_empty(in) || in_word(in, "cmds:")) return true;
bad:
    free_conditions(*all, *n);
    return false;
}

/* ---- setting ---- */

static bool others_use(const struct breaks *b, unsigned type, uint64_t addr, uint64_t len) {
    return type < 2 && find(b, !type, addr, len);
}

/* Breakpoints have the length of one instruction, which need not be known. */
static size_t target_len(unsigned type, uint64_t len) { return type < 2 ? 1 : len; }

/* What the target may pass at addr: where all conditions of all breakpoints there are false. */
static void tell_conditions(const struct breaks *b, struct target *t, unsigned type, uint64_t addr, uint64_t len) {
    struct condition all[2 * CONDITIONS_MAX];
    size_t n = 0;
    bool always = false;
    for (unsigned i = 0; i < 2 && type < 2; i++) {
        const struct break_set *s = find(b, i, addr, len);
        if (!s) continue;
        always |= s->n_conditions == 0;
        if (s->n_conditions) memcpy(all + n, s->conditions, s->n_conditions * sizeof *all);
        n += s->n_conditions;
    }
    if (type < 2) t->ops->set_conditions(t, addr, all, always ? 0 : n);
}

bool breaks_set(struct breaks *b, struct target *t, unsigned type, uint64_t addr, uint64_t len, struct in *in) {
    struct break_set set = {.used = true, .type = (uint8_t)type, .addr = addr, .len = len};
    if (type > 4 || (type >= 2 && (len == 0 || addr + len - 1 < addr))) return false;
    if (!parse_conditions(in, &set.conditions, &set.n_conditions)) return false;
    struct break_set *old = find(b, type, addr, len);
    if (old) {
        b->n_conditional -= old->n_conditions > 0;
        free_conditions(old->conditions, old->n_conditions);
        *old = set;
    } else {
        if (!grow(b) ||
            (!others_use(b, type, addr, len) && !t->ops->set_break(t, kind_of(type), addr, target_len(type, len)))) {
            free_conditions(set.conditions, set.n_conditions);
            return false;
        }
        put(b, set);
        b->n_used++;
        b->by_kind[kind_of(type)]++;
    }
    b->n_conditional += set.n_conditions > 0;
    tell_conditions(b, t, type, addr, len);
    return true;
}

bool breaks_unset(struct breaks *b, struct target *t, unsigned type, uint64_t addr, uint64_t len) {
    struct break_set *s = type <= 4 ? find(b, type, addr, len) : NULL;
    if (!s) return type <= 4; /* gdb clears to be sure */
    b->n_conditional -= s->n_conditions > 0;
    free_conditions(s->conditions, s->n_conditions);
    take_out(b, s);
    b->n_used--;
    b->by_kind[kind_of(type)]--;
    tell_conditions(b, t, type, addr, len);
    return others_use(b, type, addr, len) || t->ops->clear_break(t, kind_of(type), addr, target_len(type, len));
}

void breaks_clear(struct breaks *b, struct target *t) {
    for (size_t i = 0; i < b->n_slots; i++) {
        struct break_set s = b->slots[i];
        if (!s.used) continue;
        free_conditions(s.conditions, s.n_conditions);
        if (s.type < 2) t->ops->set_conditions(t, s.addr, NULL, 0);
        if (s.type == 1 && find(b, 0, s.addr, s.len)) continue;
        t->ops->clear_break(t, kind_of(s.type), s.addr, target_len(s.type, s.len));
    }
    free(b->slots);
    *b = (struct breaks){0};
}

/* ---- hits ---- */

int breaks_at(const struct breaks *b, uint64_t pc) {
    if (!b->n_slots || !b->by_kind[BREAK_EXEC]) return -1;
    for (size_t i = first_slot(b, pc); b->slots[i].used; i = (i + 1) & (b->n_slots - 1))
        if (b->slots[i].addr == pc && b->slots[i].type < 2) return b->slots[i].type;
    return -1;
}

static bool holds(const struct break_set *s, const struct agent_world *world) {
    for (size_t i = 0; i < s->n_conditions; i++) {
        uint64_t value;
        if (!agent_evaluate(s->conditions[i].code, s->conditions[i].n, world, &value) || value) return true;
    }
    return s->n_conditions == 0;
}

bool breaks_hold(const struct breaks *b, uint64_t pc, const struct agent_world *world) {
    bool any = false;
    if (!b->n_conditional) return true;
    for (size_t i = first_slot(b, pc); b->slots[i].used; i = (i + 1) & (b->n_slots - 1)) {
        const struct break_set *s = &b->slots[i];
        if (s->addr != pc || s->type > 1) continue;
        if (holds(s, world)) return true;
        any = true;
    }
    return !any;
}

unsigned breaks_watched(const struct breaks *b, uint64_t addr, uint64_t *inside) {
    const struct break_set *best = NULL;
    uint64_t ahead = ACCESS_MAX;
    for (size_t i = 0; i < b->n_slots; i++) {
        const struct break_set *s = &b->slots[i];
        if (!s->used || s->type < 2) continue;
        uint64_t distance = addr - s->addr < s->len ? 0 : s->addr - addr; /* wraps: far away */
        if (distance > ahead || distance >= ACCESS_MAX) continue;
        if (distance == ahead && best && best->type <= s->type) continue;
        best = s;
        ahead = distance;
    }
    if (!best) return 0;
    *inside = ahead ? best->addr : addr;
    return best->type;
}
