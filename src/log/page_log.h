/* Page log: what pages of shared memory held whenever a process of the recording got them. With it a process can be replayed
 * alone, as the debugger does. It follows from the recording: replay/gather.h makes it, beside the log.
 *
 * A struct page_log_head, padded to PAGE_LOG_START; records in any order; the index, by stream and event. Normative text:
 * docs/formats.md. */
#ifndef REPRISE_LOG_PAGE_LOG_H
#define REPRISE_LOG_PAGE_LOG_H

#include <stdint.h>

#define PAGE_LOG_FILE "pages"
#define PAGE_LOG_MAGIC 0x3130474c47505052ull /* "RPPGLG01" */
#define PAGE_LOG_START 4096ul
#define PAGE_LOG_PAGE 4096u
#define PAGE_LOG_BLOCK 64u

struct page_log_head {
    uint64_t magic;
    uint64_t recording; /* hash of the heads of all frames that its log had */
    uint64_t size;      /* of the whole file */
    uint64_t index, n;  /* where the index is, and its entries */
    uint64_t hash;      /* XXH3 64 of everything from PAGE_LOG_START on */
    uint64_t head_hash; /* of everything above */
};

#define PAGE_LOG_WHOLE 1 /* the page is zero where there are no blocks; otherwise it is as the process has left it */

struct page_log_record {
    uint64_t stream, event; /* number of the ACQUIRE event */
    uint64_t object, page;
    uint64_t blocks; /* bit i: bytes i * 64.. follow */
    uint64_t flags;  /* PAGE_LOG_WHOLE */
};

struct page_log_entry {
    uint64_t stream, event;
    uint64_t offset; /* of the record */
};

_Static_assert(sizeof(struct page_log_head) == 56, "page_log_head");
_Static_assert(sizeof(struct page_log_record) == 48, "page_log_record");
_Static_assert(sizeof(struct page_log_entry) == 24, "page_log_entry");

#endif
