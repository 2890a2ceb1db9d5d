/* Image: a checkpoint as a worker gets it, in a memfd: a struct image_head and the snapshot (log/snapshot.h), padded to whole
 * pages; n_pages pages of memory; for each of them a struct image_page. */
#ifndef REPRISE_LOG_IMAGE_H
#define REPRISE_LOG_IMAGE_H

#include <stdint.h>

#define IMAGE_MAGIC 0x3130474d49525052ull
#define IMAGE_PAGE 4096u
#define IMAGE_BLOCK 64u

struct image_head {
    uint64_t magic;
    uint64_t snapshot_len;
    uint64_t n_pages;
};

struct image_page { /* of two with the same address, the later one is put over the first */
    uint64_t address;
    uint64_t blocks; /* bit i: bytes i * 64.. count; the rest is what the mapping has by itself */
};

/* Where the pages are, and what describes them. */
static inline uint64_t image_pages(uint64_t snapshot_len) {
    return (sizeof(struct image_head) + snapshot_len + IMAGE_PAGE - 1) & ~(uint64_t)(IMAGE_PAGE - 1);
}
static inline uint64_t image_table(uint64_t snapshot_len, uint64_t n_pages) {
    return image_pages(snapshot_len) + n_pages * IMAGE_PAGE;
}

#endif
