#include "sphere/cpuid_answers.h"

#include "inproc/fmt.h"
#include "inproc/str.h"

#define CPU_NUMBER_SEGMENT 0x7b /* the kernel's; its limit has the processor's number in the lower 12 bits */

enum state { FREE, BUSY, KNOWN };
static struct answer {
    uint32_t state, leaf, part;
    uint32_t regs[4];
} answers[40];

static void ask_processor(uint32_t r[4]) { __asm__ volatile("cpuid" : "+a"(r[0]), "=b"(r[1]), "+c"(r[2]), "=d"(r[3])); }

/* Whether the answer depends on nothing but leaf and subleaf: not on which processor is asked, nor on what the kernel changes. */
static bool is_constant(uint32_t leaf) {
    return leaf == 0 || leaf == 2 || leaf == 4 || leaf == 7 || leaf == 0xd || leaf == 0x14 || leaf == 0x19 ||
           (leaf >= 0x80000000 && leaf <= 0x80000008) || leaf == 0x8000001d;
}

static bool has_subleaves(uint32_t leaf) {
    return leaf == 4 || leaf == 7 || leaf == 0xd || leaf == 0x14 || leaf == 0x8000001d;
}

/* What the answer depends on besides the leaf. False: on more than we know. */
static bool find_part(uint32_t leaf, uint32_t subleaf, uint32_t *part) {
    if (leaf == 1) { /* has the number of the processor's interrupt controller */
        uint64_t limit = 0;
        uint8_t zf;
        __asm__ volatile("lsl %w2, %k0; setz %1" : "+r"(limit), "=q"(zf) : "r"(CPU_NUMBER_SEGMENT) : "cc");
        *part = limit & 0xfff;
        return zf;
    }
    *part = has_subleaves(leaf) ? subleaf : 0;
    return is_constant(leaf);
}

/* The entry for a question, which may be FREE; NULL: the table is full. */
static struct answer *find(uint32_t leaf, uint32_t part) {
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        struct answer *a = &answers[i];
        uint32_t state = __atomic_load_n(&a->state, __ATOMIC_ACQUIRE);
        if (state == FREE || (state == KNOWN && a->leaf == leaf && a->part == part)) return a;
    }
    return NULL;
}

static void remember(struct answer *a, uint32_t leaf, uint32_t part, const uint32_t r[4]) {
    uint32_t expected = FREE;
    if (!__atomic_compare_exchange_n(&a->state, &expected, BUSY, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
    a->leaf = leaf;
    a->part = part;
    memcpy(a->regs, r, sizeof a->regs);
    __atomic_store_n(&a->state, KNOWN, __ATOMIC_RELEASE);
}

void cpuid_answer(uint32_t r[4]) {
    uint32_t leaf = r[0], part;
    struct answer *a = find_part(leaf, r[2], &part) ? find(leaf, part) : NULL;
    if (a && __atomic_load_n(&a->state, __ATOMIC_ACQUIRE) == KNOWN) {
        memcpy(r, a->regs, sizeof a->regs);
        return;
    }
    ask_processor(r);
    if (a) remember(a, leaf, part, r);
}

bool cpuid_loop_is_quick(void) {
    uint32_t r[4] = {0};
    cpuid_answer(r);
    return memcmp(&r[1], "Auth", 4) == 0 /* AuthenticAMD */ || memcmp(&r[1], "Hygo", 4) == 0 /* HygonGenuine */;
}

bool cpuid_has_bmi2(void) {
    uint32_t r[4] = {0};
    cpuid_answer(r);
    if (r[0] < 7) return false;
    uint32_t features[4] = {7};
    cpuid_answer(features);
    return features[1] >> 8 & 1;
}

size_t cpuid_to_text(char *out, size_t cap) {
    size_t at = 0;
    for (size_t i = 0; i < ARRAY_LEN(answers) && answers[i].state == KNOWN; i++) {
        const struct answer *a = &answers[i];
        at += fmt_into(out + at, cap - at, "%s%x:%x", i ? ";" : ",cpuid=", a->leaf, a->part);
        for (int k = 0; k < 4; k++) at += fmt_into(out + at, cap - at, ":%x", a->regs[k]);
    }
    return at;
}

void cpuid_from_text(const char *text) {
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        uint32_t v[6];
        for (int k = 0; k < 6; k++) {
            v[k] = (uint32_t)read_hex(&text);
            if (k < 5 && *text++ != ':') return;
        }
        remember(&answers[i], v[0], v[1], v + 2);
        if (*text++ != ';') return;
    }
}
