#include "sphere/debug_condition.h"

#include "inproc/arena.h"
#include "inproc/str.h"
#include "log/worker.h"
#include "rsp/agent.h"
#include "sphere/debug_state.h"

static uint8_t *conditions; /* struct worker_condition, one after the other */
static size_t conditions_len, room;

void condition_set(const uint8_t *list, size_t len, bool add) {
    if (!add) conditions_len = 0;
    if (conditions_len + len > room) {
        size_t larger = (conditions_len + len) * 2;
        uint8_t *p = arena_pages(larger);
        if (conditions_len) memcpy(p, conditions, conditions_len);
        if (room) arena_free_pages(conditions, room);
        conditions = p;
        room = larger;
    }
    if (len) memcpy(conditions + conditions_len, list, len);
    conditions_len += len;
}

static bool read_memory(void *arg, uint64_t addr, void *to, size_t n) { return state_read(addr, to, n) == n; }

/* General registers as gdb numbers them; conditions on others are left to who knows them. */
static bool read_register(void *arg, unsigned n, uint64_t *value) {
    static const uint8_t order[16] = {RAX, RBX, RCX, RDX, RSI, RDI, RBP, RSP, 8, 9, 10, 11, 12, 13, 14, 15};
    const struct thread *t = arg;
    if (n > 17) return false;
    *value = n < 16 ? t->tb->gpr[order[n]] : n == 16 ? t->tb->pc : state_flags(t);
    return true;
}

bool condition_holds(const struct thread *t) {
    struct agent_world world = {(void *)t, read_memory, read_register};
    bool any = false;
    for (size_t i = 0; i + sizeof(struct worker_condition) <= conditions_len;) {
        const struct worker_condition *c = (const struct worker_condition *)(conditions + i);
        size_t size = worker_condition_size(c->len);
        uint64_t value;
        if (size > conditions_len - i) break;
        i += size;
        if (c->addr != t->tb->pc) continue;
        if (!agent_evaluate(c->code, c->len, &world, &value) || value) return true;
        any = true;
    }
    return !any;
}
