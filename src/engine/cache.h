/* Code cache: memory that holds translated blocks, and how blocks are found.
 * Invariant: a block is reachable only after cache_commit(); a block that was invalidated is reachable no more, but its
 * code stays in place until every thread has passed a safepoint (epochs).
 * Owner: one per address space. Changes need cache_lock; lookups take none. */
#ifndef REPRISE_CACHE_H
#define REPRISE_CACHE_H

#include "engine/emit_x64.h"
#include "engine/map.h"
#include "inproc/layout.h"
#include "inproc/lock.h"
#include "inproc/types.h"

struct kept_file { /* which file, mapped where */
    uint64_t dev, ino, size, mtime_ns, ctime_ns;
    gaddr base;                 /* guest address of the file's first byte */
    uint64_t span;              /* bytes from there on that the region serves */
    gaddr text_start, text_end; /* the executable mapping */
};

/* Translations of a file's code that outlive the process: what they are for, and proof that they are whole. */
struct kept_head {
    uint64_t magic;
    uint64_t build; /* of the runtime */
    uint64_t policy;
    struct kept_file file;
    uint64_t base, size;             /* where the region lies */
    uint64_t code_bytes, meta_bytes; /* in the file on disk: code, then records */
    uint64_t blocks;
    uint64_t checksum; /* of the whole file with this field 0 */
};

/* How a transfer reaches a block: each way has an entry with its own conventions (translate.c). */
enum entry_kind { ENTRY_PLAIN, ENTRY_CALL, ENTRY_JMP_IND, ENTRY_CALL_IND, ENTRY_KINDS };

#define EXIT_STUB 23

/* A direct way out of a block. Lives in the region of its block; a stub names it by its offset there. */
struct exit {
    gaddr target;
    uint8_t *rel32; /* what gets patched */
    struct block *from, *to;
    struct exit *next_in;         /* other exits linked to `to` */
    uint8_t kind;                 /* ENTRY_PLAIN or ENTRY_CALL */
    uint8_t stub_code[EXIT_STUB]; /* the stub itself: cold, so not among the blocks */
};

/* One guest instruction inside a block: host code [host_off, next entry's host_off). */
struct insn_map {
    uint16_t host_off;
    uint16_t guest_off;
    uint16_t lead;   /* bytes of checks and instrumentation in front of the sequence itself */
    uint8_t spill;   /* enum spill: what a fault inside the sequence has to undo */
    uint8_t scratch; /* SPILL_SCRATCH: the register that is in s2 */
};

enum spill {
    SPILL_NONE,
    SPILL_SCRATCH,       /* map.scratch is in s2 after the first host instruction */
    SPILL_RCX,           /* rcx is in s0 after the first host instruction: indirect jmp */
    SPILL_CALL,          /* direct call: after the guest return address is pushed, only the host's push is left */
    SPILL_CALL_IND,      /* the same, with rcx in s0 and the target in s1 */
    SPILL_RET,           /* rcx in s0; from RET_PUSH_OFF on only the host's push is left */
    SPILL_GS_BASE,       /* map.scratch has the program's gs base added */
    SPILL_INT,           /* int n, map.scratch bytes long: reported at the instruction or behind it */
    SPILL_TICKED = 0x80, /* added to one of these: the instruction has counted its tick by the time it can fault */
};

struct block {
    gaddr pc, end;     /* guest bytes [pc, end) */
    uint8_t *host;     /* plain entry */
    uint32_t host_len; /* from host: instructions; stubs and prefixes lie outside */
    uint16_t n_insns, n_exits;
    bool dead;
    bool rcx_live;               /* at entry */
    bool flags_dead;             /* at entry, so that a tick may be counted with them */
    bool pushes_first;           /* the first instruction overwrites the stack slot below the return address */
    bool is_kept;                /* lives in the kept region of its pc */
    bool checked;                /* compares its guest bytes at entry: to be entered at its top only */
    uint8_t break_len;           /* bytes at `host` that leave the cache for a breakpoint; 0: none */
    uint8_t broken_len;          /* bytes behind them that are the first instruction; 0: not known, or there are none */
    uint8_t *entry[ENTRY_KINDS]; /* NULL: not made yet; entry[ENTRY_PLAIN] == host */
    struct insn_map *map;
    struct exit *exits;
    struct exit *incoming;
    struct block *next_in_region;
    struct block *next_on_page[2]; /* [0] for the page of pc, [1] for the page of end - 1 if it is another */
};

/* An entry that was made in one region for a block in another one. */
struct stray {
    struct stray *next;
    gaddr pc; /* of the block, which may be gone by now */
};

/* A stretch of memory for blocks: code grows up from its start, records grow down from its end. The structure itself is at
 * the start, and everything in it may be written to disk as it is (kept.c). */
struct region {
    struct kept_head kept;
    uint8_t *base, *end;
    uint8_t *code_next, *meta_next;
    uint8_t *code_open,
        *meta_open; /* what lies between them is not accessible: stores of the program that go astray fault */
    uint8_t *tramp_exit, *tramp_ret_fail, *tramp_jmp_fail, *tramp_call_fail;
    struct block *blocks;      /* newest first, so from high to low host addresses */
    uint32_t n_blocks, n_dead; /* how many, and how many of them are no longer of use */
    uint32_t *granules; /* for each GRANULE bytes of code: the newest block with code there, as its offset from base */
    struct stray *strays;              /* newest first */
    struct map *map;                   /* kept regions: where their own blocks are found */
    struct preset *presets;            /* kept regions: preset.h; NULL: none */
    bool presets_grown;                /* they are not those of the image that was loaded */
    bool in_tables;                    /* it is one of those that kept tables are looked for with (kept_tables.h) */
    uint64_t filled[TABLE_PAGES / 64]; /* a bit for each page of the tables that has got them */
    bool is_kept;
    bool is_loaded; /* it came from a file, with blocks that no hint (hints.h) knows of */
    bool tainted;   /* not to be saved: something in it is not what the file has, or had */
    bool
        changed; /* some of the file's code may be another by now; none of the blocks is older than that (flags_are_dead) */
    bool retired; /* evicted, waiting for its epoch */
    uint64_t retired_epoch;
    struct region *next;
};

#define GRANULE 256

extern struct lock cache_lock;

void cache_start(void);
bool region_holds(const struct region *r, const void *p);

/* The region where code of guest address pc goes, with room for at least one block; NULL: none can be had. */
struct region *cache_region_for(gaddr pc);
/* The same, but not where it would be kept: for what only this process wants. */
struct region *cache_region_apart(gaddr pc);
/* Where code that is emitted next must end. */
uint8_t *cache_code_end(const struct region *r);
/* Notes in s, which is one of r's records, that r has an entry for the block at pc, which lies elsewhere. */
void cache_note_stray(struct region *r, struct stray *s, gaddr pc);
/* Reserve records in a region; NULL if it is full. */
void *cache_meta(struct region *r, size_t bytes);
/* A block, its emitted code included, becomes reachable. */
void cache_commit(struct region *r, struct block *b, uint8_t *code_end);

/* Lookups, lock-free. Values are 0 when absent. */
struct block *cache_find(gaddr pc);
/* A block with an instruction at pc, not its first one, that may be entered there. Caller holds cache_lock. */
struct block *cache_find_around(gaddr pc);
struct site {
    uint8_t *host; /* right after a translated call that returns to this guest address; NULL: there is none */
    uint8_t *cont; /* behind the verification there: all guest registers in place */
};
struct site cache_find_site(gaddr ret_pc);
void cache_add_site(gaddr ret_pc, struct site site);
/* Those that a kept region has itself. */
void cache_each_site(const struct region *r, void (*each)(void *arg, gaddr ret_pc, struct site), void *arg);
struct block *cache_find_call(gaddr call_pc); /* the block that holds the translated call instruction at call_pc */
void cache_add_call(gaddr call_pc, struct block *b);
/* Host address of the instruction at pc inside b; NULL if pc is not one of its instructions. */
uint8_t *cache_insn_host(const struct block *b, gaddr pc);

/* The kept region that serves pc; NULL if there is none (yet). */
struct region *cache_kept_region(gaddr pc);
void cache_set_kept_region(gaddr base, size_t span, struct region *r);
/* A fresh region, in the list. NULL: the addresses are taken. */
struct region *region_make(uint64_t base, size_t size, bool is_kept);
bool region_list_add(struct region *r); /* false: too many */
/* The first region; they are linked by ->next. */
struct region *region_first(void);

/* Whether a host address is inside the cache, and the block and instruction it belongs to. */
bool cache_contains(uint64_t host_pc);
struct block *cache_block_at(uint64_t host_pc);

void cache_link(struct exit *x, struct block *to, uint8_t *entry);
void cache_invalidate(struct block *b);
/* Every block that has a byte in [lo, hi). Returns how many there were. */
size_t cache_invalidate_range(gaddr lo, gaddr hi);
/* Every block that holds the instruction at pc, whose bytes have not changed: a breakpoint there came or went. */
void cache_invalidate_at(gaddr pc);

void cache_table_set(uint64_t table, gaddr pc, const void *host);

/* Threads announce that they hold no address of the cache (they are at a safepoint)... */
void cache_safepoint(struct tblock *t);
/* ... and that they will hold none until the next cache_safepoint: a call may take long. */
#define EPOCH_IDLE UINT64_MAX
void cache_await_kick(struct tblock *t);
static inline void cache_idle(struct tblock *t) {
    __atomic_store_n(&t->epoch, EPOCH_IDLE, __ATOMIC_RELEASE);
    __asm__ volatile("" ::: "memory");
    if (unlikely(__atomic_load_n(&t->kick, __ATOMIC_ACQUIRE))) cache_await_kick(t);
}

/* Lets go of evicted regions that no thread can be in. Caller holds cache_lock. */
void cache_reclaim(void);
/* Windows of far code and kept regions of libraries that overlap [lo, hi) go, unless a thread can be in them. Caller holds
 * cache_lock. */
void cache_make_way(gaddr lo, gaddr hi);
/* Whether cache_region_for has failed since the last question: evicted regions are still held. Caller holds cache_lock. */
bool cache_is_full(void);
/* Waits until every thread has passed a safepoint. The caller holds no lock and no address of the cache. */
void cache_wait_for_room(struct tblock *t);
/* Asks threads for a safepoint if evicted regions pile up. */
void cache_hurry(void);
/* For tests: a small cache, whose evictions are verified. */
void cache_set_size(size_t bytes);

struct cache_stats {
    uint64_t blocks, insns, code_bytes, invalidated, evictions;
    uint64_t pages_written, pages_checked, pages_worn; /* code_watch.c */
    uint64_t exits, misses[ENTRY_KINDS];               /* if stats_wanted; of returns: [ENTRY_PLAIN] */
};
extern struct cache_stats cache_stats;

#endif
