#include "engine/map.h"

void map_init(struct map *m, uint64_t entries) {
    m->mask = entries - 1;
    m->used = 0;
}

static uint64_t slot_of(const struct map *m, uint64_t key) {
    uint64_t i = (key * 0x9e3779b97f4a7c15ull) >> 20 & m->mask;
    for (;; i = (i + 1) & m->mask) {
        uint64_t k = __atomic_load_n(&m->slots[i].key, __ATOMIC_ACQUIRE);
        if (k == key || k == 0) return i;
    }
}

uint64_t map_get(const struct map *m, uint64_t key) {
    const struct map_slot *s = &m->slots[slot_of(m, key)];
    return __atomic_load_n(&s->key, __ATOMIC_ACQUIRE) == key ? __atomic_load_n(&s->value, __ATOMIC_ACQUIRE) : 0;
}

bool map_put(struct map *m, uint64_t key, uint64_t value) {
    struct map_slot *s = &m->slots[slot_of(m, key)];
    if (s->key == key) {
        __atomic_store_n(&s->value, value, __ATOMIC_RELEASE);
        return true;
    }
    if (!value) return true;
    if (m->used * 4 >= m->mask * 3) return false;
    m->used++;
    __atomic_store_n(&s->value, value, __ATOMIC_RELEASE);
    __atomic_store_n(&s->key, key, __ATOMIC_RELEASE);
    return true;
}

uint64_t map_grown(const struct map *m) {
    uint64_t live = 0;
    for (uint64_t i = 0; i <= m->mask; i++) live += m->slots[i].value != 0;
    return live * 2 > m->mask ? (m->mask + 1) * 2 : m->mask + 1;
}

void map_copy(struct map *to, const struct map *from) {
    for (uint64_t i = 0; i <= from->mask; i++)
        if (from->slots[i].value) map_put(to, from->slots[i].key, from->slots[i].value);
}
