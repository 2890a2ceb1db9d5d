#include "engine/kept.h"

#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/mman.h>

#include "engine/engine.h"
#include "engine/kept_dir.h"
#include "engine/kept_mark.h"
#include "engine/kept_place.h"
#include "engine/kept_tables.h"
#include "engine/preset.h"
#include "engine/tables.h"
#include "inproc/arena.h"
#include "inproc/fmt.h"
#include "inproc/hash.h"
#include "inproc/layout.h"
#include "inproc/str.h"
#include "inproc/sys.h"

#define KEPT_MAGIC 0x31745065736972ull
#define SLOT_SIZE 0x40000ul

static void image_name(char name[KEPT_NAME], const struct kept_file *f) {
    kept_dir_name(name, hash_bytes(f, sizeof *f, kept_dir_build() ^ the_policy->id << 1));
}

static bool same_file(const struct kept_file *a, const struct kept_file *b) { return memcmp(a, b, sizeof *a) == 0; }

/* ---- loading ---- */

/* Of whole pages that begin at offset at of the image; those of all its parts are added up, in any order. */
static uint64_t checksum(const void *pages, size_t n, uint64_t at) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i += PAGE_SIZE) sum += hash_bytes((const uint8_t *)pages + i, PAGE_SIZE, at + i + 1);
    return sum;
}

/* Where the records are in the file: at a distance from their address that the kernel can map with huge pages, if they are many. */
static uint64_t meta_offset(const struct kept_head *h) {
    uint64_t address = h->base + h->size - h->meta_bytes;
    if (h->meta_bytes < HUGE_PAGE) return h->code_bytes;
    return h->code_bytes + (address - h->base - h->code_bytes) % HUGE_PAGE;
}

static bool head_fits(const struct kept_head *h, const struct kept_file *f, uint64_t file_size) {
    return h->magic == KEPT_MAGIC && h->build == kept_dir_build() && h->policy == the_policy->id &&
           same_file(&h->file, f) && kept_place_is_valid(&(struct kept_place){h->base, h->size}, f) &&
           h->code_bytes % PAGE_SIZE == 0 && h->meta_bytes % PAGE_SIZE == 0 && h->code_bytes >= PAGE_SIZE &&
           h->meta_bytes >= PAGE_SIZE && h->code_bytes < h->size && h->meta_bytes < h->size &&
           h->code_bytes + h->meta_bytes <= h->size && meta_offset(h) + h->meta_bytes == file_size;
}

static bool map_part(uint64_t at, size_t len, int fd, uint64_t offset) {
    return SYS(mmap, at, len, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, offset) == (long)at;
}

/* What lies at `head` and `meta` is mapped from fd. */
static bool is_whole(int fd, const struct stat *st, struct kept_head *head, const void *meta) {
    if (kept_is_marked(st, head->checksum)) return true;
    uint64_t said = head->checksum;
    head->checksum = 0;
    bool is = checksum(head, head->code_bytes, 0) + checksum(meta, head->meta_bytes, meta_offset(head)) == said;
    head->checksum = said;
    if (is) kept_mark(fd, st, said);
    return is;
}

static bool read_head(int fd, struct kept_head *head, const struct kept_file *f, const struct stat *st) {
    return SYS(pread64, fd, head, sizeof *head, 0) == sizeof *head && head_fits(head, f, (uint64_t)st->st_size);
}

/* Maps the image in fd where its head says; NULL: it is damaged. Addresses are reserved. */
static struct region *map_image(int fd, const struct stat *st, const struct kept_head *head) {
    struct region *r = (struct region *)head->base;
    uint64_t end = head->base + head->size, meta = end - head->meta_bytes;
    if (!map_part(head->base, head->code_bytes, fd, 0) || !map_part(meta, head->meta_bytes, fd, meta_offset(head)) ||
        !is_whole(fd, st, &r->kept, (void *)meta) || (uint64_t)r->base != head->base || (uint64_t)r->end != end)
        return NULL;
    r->code_open = r->base + head->code_bytes;
    r->meta_open = r->end - head->meta_bytes;
    r->is_loaded = true;
    r->presets_grown = r->in_tables = false;
    tables_another_region();
    return r;
}

/* *taken: where the image wants to lie, if that is not possible. */
static struct region *load(const struct kept_file *f, uint64_t *taken) {
    char name[KEPT_NAME];
    image_name(name, f);
    struct stat st;
    long fd = kept_dir_open(name, &st);
    if (fd < 0) return NULL;
    struct kept_head head;
    struct region *r = NULL;
    bool fits = read_head((int)fd, &head, f, &st);
    if (fits && SYS(mmap, head.base, head.size, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0) == (long)head.base) {
        r = map_image((int)fd, &st, &head);
        if (!r) SYS(unlink, name); /* makes way for a new one */
        if (!r || !region_list_add(r)) {
            SYS(munmap, head.base, head.size);
            r = NULL;
        }
    } else if (fits) {
        *taken = head.base;
    }
    SYS(close, fd);
    return r;
}

static bool no_room; /* for the regions of libraries: the program has memory there */

static struct region *make_fresh(const struct kept_file *f, uint64_t taken) {
    struct kept_place p = kept_place_find(f, taken);
    if (!p.size) no_room = true;
    struct region *r = p.size ? region_make(p.base, p.size, true) : NULL;
    if (r)
        r->kept = (struct kept_head){.magic = KEPT_MAGIC,
                                     .build = kept_dir_build(),
                                     .policy = the_policy->id,
                                     .file = *f,
                                     .base = p.base,
                                     .size = p.size};
    return r;
}

/* Whether the file was mapped here before, and its region has not been let go of yet. */
static bool lingers(const struct kept_file *f) {
    for (const struct region *r = region_first(); r; r = r->next)
        if (r->is_kept && same_file(&r->kept.file, f)) return true;
    return false;
}

static void prepare(gaddr pc) {
    struct kept_file f;
    if (cache_kept_region(pc)) return;
    memset(&f, 0, sizeof f); /* it is hashed as bytes */
    if (!engine_host.kept_at(pc, &f)) return;
    f.base &= ~(SLOT_SIZE - 1);
    f.span = (f.text_end - f.base + SLOT_SIZE - 1) & ~(SLOT_SIZE - 1);
    if (f.base >= LAYOUT_LIB_BASE && (no_room || f.base + f.span > LAYOUT_FILES_END)) return;
    cache_reclaim();
    if (lingers(&f)) return;
    uint64_t taken = 0;
    struct region *r = load(&f, &taken);
    if (!r) r = make_fresh(&f, taken);
    if (!r) return;
    cache_set_kept_region(f.base, f.span, r);
    if (engine_host.kept_loaded) engine_host.kept_loaded(f.text_start, f.text_end);
}

/* A huge program's region needs so much room in one piece that it has to be the first. */
void kept_prepare(gaddr pc) {
    static bool is_later;
    if (!kept_dir_is_there()) return;
    gaddr huge = is_later ? 0 : engine_host.huge_code();
    is_later = true;
    if (huge) prepare(huge);
    prepare(pc);
}

/* ---- saving ---- */

/* An image is written piece by piece: a copy of all of it would be the largest thing that a process has. Each piece is one huge page,
 * where it will be mapped as in the file: the page cache has no larger pieces than it was given. */
#define PIECE HUGE_PAGE

struct piece { /* of the region, as it will be on disk */
    const uint8_t *from, *to;
    uint8_t *buf;
};

struct image {
    const struct region *r;
    struct kept_head head;
    struct kept_writer out;
    uint64_t sum;
    struct piece piece;
};

static void put(const struct piece *p, const void *at, const void *value, size_t n) {
    const uint8_t *to = at;
    if (to >= p->from && to + n <= p->to) memcpy(p->buf + (to - p->from), value, n);
}

static void put_pointer(const struct piece *p, const void *at, const void *value) { put(p, at, &value, sizeof value); }

static bool stays_inside(const struct region *r, const struct exit *x) {
    return region_holds(r, x->to) && region_holds(r, emit_get_rel32(x->rel32));
}

static struct exit *next_inside(const struct region *r, struct exit *x) {
    while (x && !(region_holds(r, x) && stays_inside(r, x))) x = x->next_in;
    return x;
}

/* Whatever refers to other regions is undone in the piece: in records, and in the code. */
static void seclude_records(const struct image *im, const struct block *b) {
    const struct region *r = im->r;
    for (int k = 0; k < ENTRY_KINDS; k++)
        if (!region_holds(r, b->entry[k])) put_pointer(&im->piece, &b->entry[k], NULL);
    for (const struct exit *x = b->exits; x < b->exits + b->n_exits; x++) {
        if (!x->to) continue;
        if (stays_inside(r, x))
            put_pointer(&im->piece, &x->next_in, next_inside(r, x->next_in));
        else
            put_pointer(&im->piece, &x->to, NULL);
    }
    put_pointer(&im->piece, &b->incoming, next_inside(r, b->incoming));
}

static void seclude_code(const struct image *im, const struct block *b) {
    for (const struct exit *x = b->exits; x < b->exits + b->n_exits; x++) {
        int32_t to_stub = (int32_t)(x->stub_code - (x->rel32 + 4));
        if (x->to && !stays_inside(im->r, x)) put(&im->piece, x->rel32, &to_stub, sizeof to_stub);
    }
}

static void copy_piece(struct image *im, const uint8_t *from, const uint8_t *to) {
    im->piece.from = from;
    im->piece.to = to;
    memcpy(im->piece.buf, from, (size_t)(to - from));
}

static void write_piece(struct image *im, uint64_t offset) {
    size_t n = (size_t)(im->piece.to - im->piece.from);
    im->sum += checksum(im->piece.buf, n, offset);
    kept_dir_put(&im->out, im->piece.buf, n, offset);
}

/* From low addresses to high ones: the newest block has the lowest records (its exits lowest), so `b` goes along. */
static void write_records(struct image *im) {
    const struct region *r = im->r;
    const uint8_t *begin = r->end - im->head.meta_bytes;
    const struct block *b = r->blocks;
    for (const uint8_t *from = begin, *to; from < r->end; from = to) {
        to = MIN((const uint8_t *)((uint64_t)from / PIECE * PIECE + PIECE), r->end);
        copy_piece(im, from, to);
        while (b && (const uint8_t *)(b + 1) <= from) b = b->next_in_region;
        for (const struct block *k = b; k && (const uint8_t *)k->exits < to; k = k->next_in_region)
            seclude_records(im, k);
        write_piece(im, meta_offset(&im->head) + (uint64_t)(from - begin));
    }
}

static void write_head(struct image *im) {
    struct region *copy = (struct region *)im->piece.buf;
    copy->next = NULL;
    memset(copy->filled, 0, sizeof copy->filled);
    copy->kept = im->head;
    write_piece(im, 0);
    copy->kept.checksum = im->sum;
    kept_dir_put(&im->out, copy, sizeof *copy, 0);
}

/* From high addresses to low ones, as blocks are listed. The head comes last. */
static void write_code(struct image *im) {
    const struct region *r = im->r;
    const struct block *b = r->blocks;
    for (const uint8_t *to = r->base + im->head.code_bytes, *from; to > r->base; to = from) {
        from = MAX((const uint8_t *)(((uint64_t)to - 1) / PIECE * PIECE), r->base);
        copy_piece(im, from, to);
        while (b && b->host >= to) b = b->next_in_region;
        for (const struct block *k = b; k && k->host + k->host_len > from; k = k->next_in_region) seclude_code(im, k);
        if (from == r->base)
            write_head(im);
        else
            write_piece(im, (uint64_t)(from - r->base));
    }
}

static void write_image(struct image *im) {
    char name[KEPT_NAME];
    image_name(name, &im->head.file);
    if (!kept_dir_begin(&im->out)) return;
    write_records(im);
    write_code(im);
    kept_dir_end(&im->out, name, im->sum);
}

/* Another process may have stored more than we have. What lies elsewhere was in our way. */
static bool disk_has_as_much(const struct region *r) {
    char name[KEPT_NAME];
    image_name(name, &r->kept.file);
    struct stat st;
    long fd = kept_dir_open(name, &st);
    if (fd < 0) return false;
    struct kept_head head;
    bool more =
        read_head((int)fd, &head, &r->kept.file, &st) && head.base == r->kept.base && head.blocks >= r->n_blocks;
    SYS(close, fd);
    return more;
}

/* Links what was not worth a page to this process, and remembers what the tables lead to: later ones find it done. */
static void complete(struct region *r) {
    for (struct block *b = r->blocks; b; b = b->next_in_region)
        for (int i = 0; i < b->n_exits && !b->dead; i++) {
            struct exit *x = &b->exits[i];
            struct block *to = x->to ? NULL : cache_find(x->target);
            if (!to || to->dead || !region_holds(r, to)) continue;
            uint8_t *entry = translate_entry(to, x->kind);
            if (entry && region_holds(r, entry)) cache_link(x, to, entry);
        }
    preset_collect(r);
}

static void save_region(struct region *r) {
    complete(r);
    struct image im = {.r = r, .head = r->kept};
    im.head.blocks = r->n_blocks;
    im.head.checksum = 0;
    im.head.code_bytes = PAGE_UP((size_t)(r->code_next - r->base));
    im.head.meta_bytes = (size_t)(r->end - (uint8_t *)PAGE_DOWN((uint64_t)r->meta_next));
    size_t bytes = im.head.code_bytes + im.head.meta_bytes;
    if (bytes > (size_t)(r->end - r->base) || !kept_dir_may_write(bytes + HUGE_PAGE /* meta_offset() */)) return;
    im.piece.buf = arena_try_pages(PIECE);
    if (!im.piece.buf) return;
    write_image(&im);
    r->kept.blocks = r->n_blocks;
    arena_free_pages(im.piece.buf, PIECE);
}

#define BLOCK_BYTES (10ul << 10) /* of an image are written in the time that one block takes to translate, about */

/* What a process lacks is translated again by each that needs it. Of those one writes an image with it, chosen so that all of them
 * together have lost about as much as the writing takes: the less they lack, and the larger the image, the more of them. */
static bool is_worth_saving(const struct region *r) {
    uint64_t bytes = (uint64_t)(r->code_next - r->base) + (uint64_t)(r->end - r->meta_next);
    uint64_t lacked = r->n_blocks - r->kept.blocks;
    if (r->n_blocks <= r->kept.blocks) return false;
    if (lacked > r->kept.blocks / 128 + 4) return true;
    return (uint64_t)SYS(getpid) * 0x9e3779b97f4a7c15ull >> 32 < (lacked * BLOCK_BYTES << 32) / bytes;
}

/* Blocks that had to go for breakpoints stay in the image as rubble. */
static bool is_worn(const struct region *r) { return r->n_dead > r->n_blocks / 2 + 64; }

static void remove_image(const struct region *r) {
    char name[KEPT_NAME];
    image_name(name, &r->kept.file);
    SYS(unlink, name);
}

void kept_save(void) {
    if (!kept_dir_is_there()) return;
    bool wrote = false;
    lock_take(&cache_lock);
    for (struct region *r = region_first(); r; r = r->next) {
        if (!r->is_kept || r->retired || r->tainted || !is_worth_saving(r)) continue;
        if (disk_has_as_much(r)) continue;
        if (is_worn(r)) {
            remove_image(r); /* the next one starts afresh */
            continue;
        }
        save_region(r);
        wrote = true;
    }
    if (wrote)
        kept_dir_trim();
    else if (tables_worth_keeping())
        kept_tables_save();
    lock_drop(&cache_lock);
}
