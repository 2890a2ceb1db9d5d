#include "sphere/cpuid_answers.h"

#include "inproc/str.h"
#include "sphere/channel.h"

static void ask_processor(uint32_t r[4]) { __asm__ volatile("cpuid" : "+a"(r[0]), "=b"(r[1]), "+c"(r[2]), "=d"(r[3])); }

/* Whether the answer does not depend on which processor is asked, and on nothing that the kernel changes. */
static bool is_constant(uint32_t leaf) {
    return leaf == 0 || leaf == 2 || leaf == 4 || leaf == 7 || (leaf >= 0x80000000 && leaf <= 0x80000008) ||
           leaf == 0x8000001d;
}

static bool has_parts(uint32_t leaf) { return leaf == 4 || leaf == 7 || leaf == 0x8000001d; }

/* The entry for a question, which may be FREE; NULL: the table is full. */
static struct channel_cpuid *find(uint32_t leaf, uint32_t part) {
    for (uint32_t i = 0; i < CHANNEL_CPUIDS; i++) {
        struct channel_cpuid *e = &the_channel->cpuids[i];
        uint32_t state = __atomic_load_n(&e->state, __ATOMIC_ACQUIRE);
        if (state == CPUID_FREE || (state == CPUID_KNOWN && e->leaf == leaf && e->part == part)) return e;
    }
    return NULL;
}

void cpuid_answer(uint32_t r[4]) {
    uint32_t leaf = r[0], part = has_parts(leaf) ? r[2] : 0, expected = CPUID_FREE;
    struct channel_cpuid *e = the_channel && is_constant(leaf) ? find(leaf, part) : NULL;
    if (e && __atomic_load_n(&e->state, __ATOMIC_ACQUIRE) == CPUID_KNOWN) {
        memcpy(r, e->regs, sizeof e->regs);
        return;
    }
    ask_processor(r);
    if (!e || !__atomic_compare_exchange_n(&e->state, &expected, CPUID_BUSY, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    e->leaf = leaf;
    e->part = part;
    memcpy(e->regs, r, sizeof e->regs);
    __atomic_store_n(&e->state, CPUID_KNOWN, __ATOMIC_RELEASE);
}
