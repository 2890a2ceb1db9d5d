/* Pages that hold a function which was just run, with room for what the kernel writes. */
#pragma once
#include "guest.h"

static int kw_next;

struct kw {
    uint8_t *page; /* the function is at its start */
    uint8_t *room; /* 3,000 bytes, zeroed, on the same page */
    int value;
};

static inline int kw_run(struct kw k) { return ((int (*)(void))k.page)(); }

/* A new page every time, at a new address: pages that are written often are treated in another way. */
static inline struct kw kw_page(void) {
    struct kw k = {.value = ++kw_next};
    k.page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    k.room = k.page + 1024;
    k.page[0] = 0xb8, memcpy(k.page + 1, &k.value, 4), k.page[5] = 0xc3;
    CHECK(kw_run(k) == k.value);
    return k;
}

/* One case: `k` is a page with code and `out` the room on it; the code must still run afterwards. */
#define KW(name, ...)                                                   \
    do {                                                                \
        struct kw k = kw_page();                                        \
        char *out = (char *)k.room;                                     \
        int before = failures;                                          \
        (void)out;                                                      \
        __VA_ARGS__                                                     \
        CHECK(kw_run(k) == k.value);                                    \
        printf("%s: %s\n", name, failures == before ? "ok" : "FAILED"); \
    } while (0)
