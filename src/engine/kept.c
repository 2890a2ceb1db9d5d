#include "engine/kept.h"

#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/mman.h>

#include "engine/engine.h"
#include "engine/kept_mark.h"
#include "engine/kept_place.h"
#include "engine/preset.h"
#include "inproc/arena.h"
#include "inproc/fmt.h"
#include "inproc/hash.h"
#include "inproc/layout.h"
#include "inproc/str.h"
#include "inproc/sys.h"

#define KEPT_MAGIC 0x31745065736972ull
#define SLOT_SIZE 0x40000ul
#define NAME_LEN 17
#define TEMP_PREFIX ".new-"
#define TEMP_OLD 600 /* seconds: whoever wrote it is gone */
#define RLIMIT_FSIZE_ 1

static char dir[512];
static uint64_t build_id;
static uint64_t dir_limit = 512ul << 20; /* bytes of all images together */

void kept_start(const char *path, uint64_t build) {
    build_id = build;
    if (path) fmt_into(dir, sizeof dir, "%s", path);
}

void kept_set_limit(uint64_t bytes) { dir_limit = bytes; }

static void image_name(char *out, size_t cap, const struct kept_file *f) {
    uint64_t h = hash_bytes(f, sizeof *f, build_id ^ the_policy->id << 1);
    fmt_into(out, cap, "%s/%016lx", dir, h);
}

static bool same_file(const struct kept_file *a, const struct kept_file *b) { return memcmp(a, b, sizeof *a) == 0; }

/* ---- loading ---- */

static uint64_t checksum(struct kept_head *head, const void *a, size_t a_len, const void *b, size_t b_len) {
    uint64_t keep = head->checksum;
    head->checksum = 0;
    uint64_t h = hash_bytes(b, b_len, hash_bytes(a, a_len, 0));
    head->checksum = keep;
    return h;
}

/* Where the records are in the file: at a distance from their address that the kernel can map with huge pages, if they are many. */
static uint64_t meta_offset(const struct kept_head *h) {
    uint64_t address = h->base + h->size - h->meta_bytes;
    if (h->meta_bytes < HUGE_PAGE) return h->code_bytes;
    return h->code_bytes + (address - h->base - h->code_bytes) % HUGE_PAGE;
}

static bool head_fits(const struct kept_head *h, const struct kept_file *f, uint64_t file_size) {
    return h->magic == KEPT_MAGIC && h->build == build_id && h->policy == the_policy->id && same_file(&h->file, f) &&
           kept_place_is_valid(&(struct kept_place){h->base, h->size}, f) && h->code_bytes % PAGE_SIZE == 0 &&
           h->meta_bytes % PAGE_SIZE == 0 && h->code_bytes >= PAGE_SIZE && h->meta_bytes >= PAGE_SIZE &&
           h->code_bytes < h->size && h->meta_bytes < h->size && h->code_bytes + h->meta_bytes <= h->size &&
           meta_offset(h) + h->meta_bytes == file_size;
}

static long open_image(const char *name, struct stat *st) {
    long fd = SYS(openat, AT_FDCWD, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return fd;
    if (SYS(fstat, fd, st) != 0 || (st->st_mode & 0170000) != 0100000 || (st->st_mode & 022) ||
        st->st_uid != (uint32_t)SYS(geteuid)) {
        SYS(close, fd);
        return -EACCES;
    }
    return fd;
}

static bool map_part(uint64_t at, size_t len, int fd, uint64_t offset) {
    return SYS(mmap, at, len, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, offset) == (long)at;
}

/* What lies at `head` and `meta` is mapped from fd. */
static bool is_whole(int fd, const struct stat *st, struct kept_head *head, const void *meta) {
    if (kept_is_marked(st, head->checksum)) return true;
    if (checksum(head, head, head->code_bytes, meta, head->meta_bytes) != head->checksum) return false;
    kept_mark(fd, st, head->checksum);
    return true;
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
    return r;
}

/* *taken: where the image wants to lie, if that is not possible. */
static struct region *load(const struct kept_file *f, uint64_t *taken) {
    char name[600];
    image_name(name, sizeof name, f);
    struct stat st;
    long fd = open_image(name, &st);
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

static struct region *make_fresh(const struct kept_file *f, uint64_t taken) {
    struct kept_place p = kept_place_find(f, taken);
    struct region *r = p.size ? region_make(p.base, p.size, true) : NULL;
    if (r)
        r->kept = (struct kept_head){.magic = KEPT_MAGIC,
                                     .build = build_id,
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
    if (f.base >= LAYOUT_LIB_BASE && f.base + f.span > LAYOUT_FILES_END) return;
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
    if (!dir[0]) return;
    gaddr huge = is_later ? 0 : engine_host.huge_code();
    is_later = true;
    if (huge) prepare(huge);
    prepare(pc);
}

/* ---- saving ---- */

struct copy { /* a region as it will be on disk */
    const struct region *r;
    uint8_t *buf;
    size_t code_bytes, meta_bytes;
};

static void *in_copy(const struct copy *c, const void *p) {
    uint64_t off = (uint64_t)((const uint8_t *)p - c->r->base);
    if (off < c->code_bytes) return c->buf + off;
    return c->buf + c->code_bytes + ((const uint8_t *)p - (c->r->end - c->meta_bytes));
}

static bool stays_inside(const struct region *r, const struct exit *x) {
    return region_holds(r, x->to) && region_holds(r, emit_get_rel32(x->rel32));
}

/* Undoes in the copy whatever refers to other regions. */
static void seclude(const struct copy *c) {
    const struct region *r = c->r;
    for (const struct block *b = r->blocks; b; b = b->next_in_region) {
        struct block *bc = in_copy(c, b);
        for (int k = 0; k < ENTRY_KINDS; k++)
            if (b->entry[k] && !region_holds(r, b->entry[k])) bc->entry[k] = NULL;
        for (int i = 0; i < b->n_exits; i++) {
            const struct exit *x = &b->exits[i];
            if (!x->to || stays_inside(r, x)) continue;
            struct exit *xc = in_copy(c, x);
            xc->to = NULL;
            *(int32_t *)in_copy(c, x->rel32) = (int32_t)(x->stub_code - (x->rel32 + 4));
        }
        struct exit **tail = &bc->incoming;
        for (struct exit *x = b->incoming; x; x = x->next_in) {
            if (!region_holds(r, x) || !stays_inside(r, x)) continue;
            *tail = x;
            tail = &((struct exit *)in_copy(c, x))->next_in;
        }
        *tail = NULL;
    }
}

static bool write_all(int fd, const uint8_t *p, size_t n, uint64_t at) {
    while (n) {
        long got = SYS(pwrite64, fd, p, n, at);
        if (got <= 0) return false;
        p += got;
        n -= (size_t)got;
        at += (uint64_t)got;
    }
    return true;
}

static void write_image(const struct copy *c) {
    char name[600], temp[600];
    image_name(name, sizeof name, &c->r->kept.file);
    fmt_into(temp, sizeof temp, "%s/" TEMP_PREFIX "%d", dir, (int)SYS(gettid));
    long fd = SYS(openat, AT_FDCWD, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd == -EEXIST) { /* left behind by a process that was killed */
        SYS(unlink, temp);
        fd = SYS(openat, AT_FDCWD, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    }
    if (fd < 0) return;
    const struct kept_head *head = &((const struct region *)c->buf)->kept;
    bool done = write_all((int)fd, c->buf, c->code_bytes, 0) &&
                write_all((int)fd, c->buf + c->code_bytes, c->meta_bytes, meta_offset(head));
    kept_mark((int)fd, NULL, head->checksum);
    SYS(close, fd);
    if (!done || SYS(rename, temp, name) != 0) SYS(unlink, temp);
}

/* Another process may have stored more than we have. What lies elsewhere was in our way. */
static bool disk_has_as_much(const struct region *r) {
    char name[600];
    image_name(name, sizeof name, &r->kept.file);
    struct stat st;
    long fd = open_image(name, &st);
    if (fd < 0) return false;
    struct kept_head head;
    bool more =
        read_head((int)fd, &head, &r->kept.file, &st) && head.base == r->kept.base && head.blocks >= r->n_blocks;
    SYS(close, fd);
    return more;
}

/* Larger files raise SIGXFSZ, which is the program's business. */
static bool may_write(uint64_t bytes) {
    uint64_t limit[2];
    return bytes <= dir_limit && SYS(prlimit64, 0, RLIMIT_FSIZE_, 0, limit) == 0 && bytes <= limit[0];
}

/* Links what was not worth a page to this process, and remembers what the tables lead to: later ones find it done. */
static void complete(struct region *r) {
    for (struct block *b = r->blocks; b; b = b->next_in_region)
        for (int i = 0; i < b->n_exits; i++) {
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
    struct copy c = {.r = r};
    c.code_bytes = PAGE_UP((size_t)(r->code_next - r->base));
    c.meta_bytes = (size_t)(r->end - (uint8_t *)PAGE_DOWN((uint64_t)r->meta_next));
    if (c.code_bytes + c.meta_bytes > (size_t)(r->end - r->base) || !may_write(c.code_bytes + c.meta_bytes)) return;
    c.buf = arena_try_pages(c.code_bytes + c.meta_bytes);
    if (!c.buf) return;
    memcpy(c.buf, r->base, c.code_bytes);
    memcpy(c.buf + c.code_bytes, r->end - c.meta_bytes, c.meta_bytes);
    seclude(&c);
    struct region *rc = (struct region *)c.buf;
    rc->next = NULL;
    memset(rc->filled, 0, sizeof rc->filled);
    rc->kept.blocks = r->n_blocks;
    rc->kept.code_bytes = c.code_bytes;
    rc->kept.meta_bytes = c.meta_bytes;
    rc->kept.checksum = checksum(&rc->kept, c.buf, c.code_bytes, c.buf + c.code_bytes, c.meta_bytes);
    write_image(&c);
    r->kept.blocks = r->n_blocks;
    arena_free_pages(c.buf, c.code_bytes + c.meta_bytes);
}

struct image {
    uint64_t size, used; /* used: when, in seconds */
    char name[NAME_LEN];
};

/* Images in the directory, at most `most` of them; *total counts the bytes of all. Removes what was left unfinished. */
static size_t list_images(int fd, struct image *list, size_t most, uint64_t *total) {
    static char buf[32768] __attribute__((aligned(8)));
    int64_t now[2] = {0, 0};
    SYS(clock_gettime, 0 /* CLOCK_REALTIME */, now);
    size_t n = 0;
    *total = 0;
    SYS(lseek, fd, 0, 0);
    for (long got; (got = SYS(getdents64, fd, buf, sizeof buf)) > 0;) {
        for (long at = 0; at < got; at += *(uint16_t *)(buf + at + 16)) {
            const char *name = buf + at + 19;
            struct stat st;
            bool temp = str_starts(name, TEMP_PREFIX);
            if ((!temp && strlen(name) != NAME_LEN - 1) || SYS(newfstatat, fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
                continue;
            if (temp) {
                if ((int64_t)st.st_mtime + TEMP_OLD < now[0]) SYS(unlinkat, fd, name, 0);
                continue;
            }
            *total += (uint64_t)st.st_size;
            if (n == most) continue;
            list[n].size = (uint64_t)st.st_size;
            list[n].used = kept_last_use(&st);
            memcpy(list[n++].name, name, NAME_LEN);
        }
    }
    return n;
}

/* Removes images when all of them together are too large: those not used for longest. */
static void trim_dir(void) {
    static struct image list[4096];
    uint64_t total;
    long fd = SYS(openat, AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return;
    size_t n = list_images((int)fd, list, ARRAY_LEN(list), &total);
    while (total > dir_limit && n) {
        size_t oldest = 0;
        for (size_t i = 1; i < n; i++)
            if (list[i].used < list[oldest].used) oldest = i;
        SYS(unlinkat, fd, list[oldest].name, 0);
        total -= list[oldest].size;
        list[oldest] = list[--n];
        if (!n && total > dir_limit) n = list_images((int)fd, list, ARRAY_LEN(list), &total);
    }
    SYS(close, fd);
}

#define SELDOM (16ul << 10) /* bytes of an image that are written for one more process that lacks something */

/* A little growth is not worth the writing to each process, but to one of many, the fewer the larger the image: what they all
 * lack is translated by all. */
static bool is_worth_saving(const struct region *r) {
    uint64_t bytes = (uint64_t)(r->code_next - r->base) + (uint64_t)(r->end - r->meta_next);
    uint64_t little = (uint64_t)SYS(getpid) % (bytes / SELDOM + 1) == 0 ? 0 : r->kept.blocks / 128 + 4;
    return r->n_blocks > r->kept.blocks + little;
}

void kept_save(void) {
    if (!dir[0]) return;
    bool wrote = false;
    lock_take(&cache_lock);
    for (struct region *r = region_first(); r; r = r->next) {
        if (!r->is_kept || r->retired || r->tainted || !is_worth_saving(r)) continue;
        if (disk_has_as_much(r)) continue;
        save_region(r);
        wrote = true;
    }
    if (wrote) trim_dir();
    lock_drop(&cache_lock);
}
