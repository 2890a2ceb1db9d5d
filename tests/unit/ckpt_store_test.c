// link: src/ckpt/files.c src/ckpt/store.c src/ckpt/write.c src/ckpt/merge.c src/ckpt/meta.c src/ckpt/slots.c
// libs: -lxxhash -Wl,--wrap=pwrite,--wrap=renameat,--wrap=unlinkat,--wrap=openat,--wrap=fallocate
/* Checkpoint store: compared with full copies of memory, at every checkpoint that is left, after hundreds of them, after kills
 * at any write, rename or removal, and with damaged files. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ckpt/store.h"

/* ---- deaths ---- */

static long ops_left = -1; /* until the process dies; -1: never */
static long ops_done;

static bool dies_here(void) {
    ops_done++;
    return ops_left >= 0 && ops_left-- == 0;
}

ssize_t __real_pwrite(int, const void *, size_t, off_t);
ssize_t __wrap_pwrite(int fd, const void *p, size_t n, off_t at) {
    if (dies_here()) {
        __real_pwrite(fd, p, (size_t)ops_done * 977 % (n + 1), at); /* a part of it */
        _exit(9);
    }
    return __real_pwrite(fd, p, n, at);
}
#define MAY_DIE(result, name, params, args) \
    result __real_##name params;            \
    result __wrap_##name params {           \
        if (dies_here()) _exit(9);          \
        return __real_##name args;          \
    }
MAY_DIE(int, renameat, (int a, const char *b, int c, const char *d), (a, b, c, d))
MAY_DIE(int, unlinkat, (int a, const char *b, int c), (a, b, c))
MAY_DIE(int, openat, (int a, const char *b, int c, mode_t d), (a, b, c, d))
MAY_DIE(int, fallocate, (int a, int b, off_t c, off_t d), (a, b, c, d))

/* ---- the model: all of memory at every checkpoint ---- */

#define PAGES 24
#define BASE 0x7e8000000000ull

struct model_page {
    bool is_mapped, is_file;
    uint8_t bytes[CKPT_PAGE];
};

struct model {
    uint64_t random;
    uint64_t taken;
    struct model_page now[PAGES];
    bool written[PAGES];
    struct model_page *then; /* of all checkpoints, PAGES each */
};

static uint64_t rnd(struct model *m, uint64_t below) {
    m->random = m->random * 6364136223846793005ull + 1442695040888963407ull;
    return (m->random >> 33) % below;
}

static uint64_t address_of(size_t i) { return BASE + (i + i / 8 * 5) * CKPT_PAGE; } /* with gaps */

static void fill_base(uint8_t *bytes, size_t i, bool is_file) {
    for (size_t k = 0; k < CKPT_PAGE; k++) bytes[k] = is_file ? (uint8_t)(i * 31 + k / 16) : 0;
}

static struct model *new_model(uint64_t seed, size_t most) {
    struct model *m = calloc(1, sizeof *m);
    m->random = seed * 0x9e3779b97f4a7c15ull + 1;
    m->then = calloc(most * PAGES, sizeof *m->then);
    return m;
}

static void free_model(struct model *m) {
    free(m->then);
    free(m);
}

static void map_page(struct model *m, size_t i) {
    m->now[i].is_mapped = true;
    m->now[i].is_file = rnd(m, 3) == 0;
    m->written[i] = false;
    fill_base(m->now[i].bytes, i, m->now[i].is_file);
}

static void write_page(struct model *m, size_t i) {
    uint8_t *bytes = m->now[i].bytes;
    if (!m->now[i].is_mapped) map_page(m, i);
    for (uint64_t k = rnd(m, 6); k--;) {
        uint8_t *block = bytes + rnd(m, CKPT_PAGE_BLOCKS) * CKPT_BLOCK;
        uint64_t how = rnd(m, 4);
        if (how == 0) memset(block, 0, CKPT_BLOCK);
        if (how == 1) memset(block, (int)rnd(m, 3), CKPT_BLOCK);
        if (how >= 2) block[rnd(m, CKPT_BLOCK)] = (uint8_t)rnd(m, 256);
    }
    m->written[i] = true;
}

/* Unmaps some, maps some anew. Ranges of the store may cover the gaps, too. */
static size_t drop_some(struct model *m, struct ckpt_range *dropped) {
    size_t n = 0;
    for (uint64_t k = rnd(m, 5) == 0 ? 1 + rnd(m, 2) : 0; k--;) {
        size_t from = rnd(m, PAGES), to = from + 1 + rnd(m, 4);
        if (to > PAGES) to = PAGES;
        dropped[n++] = (struct ckpt_range){address_of(from), address_of(to - 1) + CKPT_PAGE};
        for (size_t i = from; i < to; i++) {
            m->now[i].is_mapped = m->written[i] = false;
            if (rnd(m, 2)) map_page(m, i);
        }
    }
    return n;
}

/* The program runs for a while; then a checkpoint. s NULL: only the model's. */
static bool advance(struct model *m, struct ckpt_store *s) {
    struct ckpt_range dropped[8];
    size_t n = drop_some(m, dropped), order[PAGES];
    for (size_t i = 0; i < PAGES; i++)
        if (rnd(m, 3) == 0) write_page(m, i);
    for (size_t i = 0; i < PAGES; i++) order[i] = i;
    if (rnd(m, 2)) { /* pages of a collision list */
        for (size_t i = 0; i < PAGES; i++) {
            size_t k = rnd(m, PAGES), t = order[i];
            order[i] = order[k];
            order[k] = t;
        }
    }
    char state[64];
    int len = snprintf(state, sizeof state, "state %lu", m->taken);
    struct ckpt_place place = {.event = m->taken * 10, .ticks = m->taken * 1000};
    bool fine = !s || ckpt_begin(s, &place, dropped, n);
    for (size_t i = 0; s && fine && i < PAGES; i++) {
        const struct model_page *p = &m->now[order[i]];
        if (m->written[order[i]])
            fine = ckpt_page(s, address_of(order[i]), p->is_file ? CKPT_BASE_FILE : CKPT_BASE_ZERO, p->bytes);
    }
    fine = fine && (!s || ckpt_commit(s, state, (size_t)len));
    memset(m->written, 0, sizeof m->written);
    memcpy(m->then + m->taken++ * PAGES, m->now, sizeof m->now);
    return fine;
}

static void overlay(uint8_t *bytes, const struct ckpt_restored *r) {
    for (unsigned b = 0; b < CKPT_PAGE_BLOCKS; b++)
        if (r->blocks >> b & 1) memcpy(bytes + b * CKPT_BLOCK, r->bytes + b * CKPT_BLOCK, CKPT_BLOCK);
}

static size_t page_at(uint64_t address) {
    for (size_t i = 0; i < PAGES; i++)
        if (address_of(i) == address) return i;
    fail_msg("address %lx was never given", address);
    return 0;
}

/* Memory as checkpoint i of the store gives it, by iteration and by single look-ups. */
static void compare_one(const struct ckpt_store *s, size_t i, const struct model_page *want) {
    static uint8_t got[PAGES][CKPT_PAGE];
    struct ckpt_restored r, again;
    struct ckpt_cursor c;
    char why[256];
    uint64_t before = 0;
    for (size_t k = 0; k < PAGES; k++) fill_base(got[k], k, want[k].is_file);
    for (ckpt_pages(s, i, &c); ckpt_next(&c, &r);) {
        assert_true(r.address > before);
        before = r.address;
        size_t k = page_at(r.address);
        assert_true(want[k].is_mapped);
        overlay(got[k], &r);
        assert_true(ckpt_read(s, i, r.address + 5, &again, why));
        assert_true(again.address == r.address && again.blocks == r.blocks);
        assert_memory_equal(again.bytes, r.bytes, CKPT_PAGE);
    }
    assert_string_equal(c.why, "");
    for (size_t k = 0; k < PAGES; k++)
        if (want[k].is_mapped) assert_memory_equal(got[k], want[k].bytes, CKPT_PAGE);
}

static void compare(const struct ckpt_store *s, const struct model *m) {
    uint64_t next = 0;
    uint32_t level = UINT32_MAX;
    for (size_t i = 0; i < ckpt_count(s); i++) {
        struct ckpt_info info;
        char text[64];
        size_t len;
        assert_true(ckpt_info(s, i, &info));
        assert_true(info.first == next && info.last >= next && info.last < m->taken && info.level <= level);
        next = info.last + 1;
        level = info.level;
        assert_int_equal(info.place.event, info.last * 10);
        assert_int_equal(ckpt_before(s, info.place.event, info.place.ticks + 5), i);
        snprintf(text, sizeof text, "state %lu", info.last);
        const void *state = ckpt_state(s, i, &len);
        assert_int_equal(len, strlen(text));
        assert_memory_equal(state, text, len);
        compare_one(s, i, m->then + info.last * PAGES);
    }
}

/* ---- a directory for each test ---- */

static char dir[64];

static int set_up(void **state) {
    snprintf(dir, sizeof dir, "%s/ckpt-test-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state) {
    char **names, path[400], why[WHY_MAX];
    size_t n;
    if (ckpt_files(dir, &names, &n, why)) {
        for (size_t i = 0; i < n; i++) {
            snprintf(path, sizeof path, "%s/%s", dir, names[i]);
            unlink(path);
            free(names[i]);
        }
        free(names);
    }
    return rmdir(dir);
}

/* ---- tests ---- */

static void test_model(void **state) {
    char why[WHY_MAX];
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct model *m = new_model(seed, 100);
        struct ckpt_store *s = seed % 2 ? ckpt_create(dir, 7, why) : ckpt_create_temporary(why);
        assert_non_null(s);
        for (int k = 0; k < 100; k++) {
            assert_true(advance(m, s));
            if (k % 9 == 0 || k == 99) compare(s, m);
        }
        ckpt_close(s);
        if (seed % 2) {
            s = ckpt_open(dir, 7, why);
            assert_non_null(s);
            assert_string_equal(ckpt_damage(s), "");
            assert_int_equal(ckpt_space(s).taken, 100);
            compare(s, m);
            ckpt_close(s);
        }
        free_model(m);
    }
}

/* Of each level one or two are left; what they hold in common is stored once a level. */
static void test_levels(void **state) {
    char why[WHY_MAX];
    struct ckpt_store *s = ckpt_create_temporary(why);
    uint8_t page[CKPT_PAGE] = {1};
    for (uint64_t k = 1; k <= 1000; k++) {
        struct ckpt_place place = {.event = k};
        assert_true(ckpt_begin(s, &place, NULL, 0));
        for (uint64_t i = 0; i < 4; i++) {
            for (size_t b = 0; b < CKPT_PAGE; b += CKPT_BLOCK)
                page[b + 1] = (uint8_t)(k + i), page[b + 2] = (uint8_t)(k >> 8);
            assert_true(ckpt_page(s, BASE + i * CKPT_PAGE, CKPT_BASE_ZERO, page));
        }
        assert_true(ckpt_commit(s, "", 0));
        size_t want = 0;
        for (uint64_t left = k; left; left = (left - 1) / 2) want += left % 2 ? 1 : 2;
        assert_int_equal(ckpt_count(s), want);
    }
    struct ckpt_space space = ckpt_space(s);
    assert_true(space.data <= 2 * 10 * 4 * CKPT_PAGE + 65536);
    assert_int_equal(space.unconsolidated, 1000 * 4 * 64 * 72);
    ckpt_close(s);
}

/* Blocks that are what they were cost nothing; zero blocks have no data. */
static void test_sparing(void **state) {
    char why[WHY_MAX];
    struct ckpt_store *s = ckpt_create_temporary(why);
    struct ckpt_place place = {0};
    struct ckpt_info info;
    uint8_t page[CKPT_PAGE] = {0};
    page[130] = 5;
    assert_true(ckpt_begin(s, &place, NULL, 0) && ckpt_page(s, BASE, CKPT_BASE_ZERO, page) && ckpt_commit(s, "a", 1));
    assert_true(ckpt_info(s, 0, &info) && info.blocks == 1 && info.pages == 1);
    assert_true(ckpt_begin(s, &place, NULL, 0) && ckpt_page(s, BASE, CKPT_BASE_ZERO, page) && ckpt_commit(s, "b", 1));
    assert_true(ckpt_info(s, 1, &info) && info.blocks == 0 && info.pages == 0);
    assert_true(ckpt_begin(s, &place, NULL, 0) && ckpt_page(s, BASE + CKPT_PAGE, CKPT_BASE_FILE, page) &&
                ckpt_commit(s, "c", 1));
    assert_true(ckpt_info(s, ckpt_count(s) - 1, &info) && info.blocks == 64);
    assert_true(ckpt_space(s).data <= CKPT_PAGE);
    ckpt_close(s);
}

static void test_refusals(void **state) {
    char why[WHY_MAX];
    struct ckpt_store *s = ckpt_create_temporary(why);
    struct ckpt_place place = {0};
    uint8_t page[CKPT_PAGE] = {1};
    assert_false(ckpt_page(s, BASE, CKPT_BASE_ZERO, page)); /* none was begun */
    assert_true(ckpt_begin(s, &place, NULL, 0));
    assert_false(ckpt_page(s, BASE + 1, CKPT_BASE_ZERO, page));
    assert_true(ckpt_error(s)[0]);
    assert_true(ckpt_begin(s, &place, NULL, 0) && ckpt_page(s, BASE, CKPT_BASE_ZERO, page));
    assert_true(ckpt_page(s, BASE, CKPT_BASE_ZERO, page));
    assert_false(ckpt_commit(s, "", 0)); /* a page twice */
    assert_int_equal(ckpt_count(s), 0);
    assert_true(ckpt_begin(s, &place, NULL, 0) && ckpt_page(s, BASE, CKPT_BASE_ZERO, page) && ckpt_commit(s, "", 0));
    assert_int_equal(ckpt_count(s), 1);
    ckpt_close(s);
    assert_null(ckpt_open(dir, 3, why));
    assert_true(ckpt_is_file_name("ckpt-0.data") && ckpt_is_file_name("ckpt-12.0-7"));
    const char *const wrong[] = {"ckpt-0.new",   "ckpt-.data",  "ckpt-0.7-3",
                                 "ckpt-01.data", "ckpt-0.0-1x", "ckpt-0.data/",
                                 "log",          "ckpt-0.",     "ckpt-99999999999999999999.data"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_false(ckpt_is_file_name(wrong[i]));
}

/* The process dies at one write, rename, removal, ...: all checkpoints that it had finished are there or merged into later ones, and right. */
static void die_at(uint64_t seed, long op, uint64_t *committed, size_t most) {
    char why[WHY_MAX];
    *committed = 0;
    pid_t child = fork();
    if (child == 0) {
        ops_left = op;
        struct model *m = new_model(seed, most);
        struct ckpt_store *s = ckpt_create(dir, seed, why);
        while (s && m->taken < most && advance(m, s)) *committed = m->taken;
        _exit(s && m->taken == most ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 9 || WEXITSTATUS(status) == 0));
}

static void test_deaths(void **state) {
    char why[WHY_MAX];
    const size_t most = 40;
    uint64_t *committed = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct model *m = new_model(77, most);
    while (m->taken < most) advance(m, NULL);
    int opened = 0;
    for (long op = 0; op < 1500; op += 1 + op % 3) {
        die_at(77, op, committed, most);
        struct ckpt_store *s = ckpt_open(dir, 77, why);
        assert_true(s || *committed == 0);
        if (!s) continue;
        opened++;
        assert_string_equal(ckpt_damage(s), "");
        uint64_t taken = ckpt_space(s).taken;
        assert_true(taken == *committed || taken == *committed + 1);
        compare(s, m);
        ckpt_close(s);
        if (*committed == most) break;
    }
    assert_true(opened > 100 && *committed == most); /* from the first operation to the last */
    free_model(m);
    munmap(committed, 4096);
}

/* A full disk: the checkpoint is given up, and later ones are right. */
static void test_failure(void **state) {
    char why[WHY_MAX];
    struct ckpt_store *s = ckpt_create(dir, 5, why);
    struct model *m = new_model(5, 10);
    struct ckpt_place place = {0};
    static uint8_t big[CKPT_PAGE];
    assert_true(advance(m, s) && advance(m, s));
    memset(big, 7, sizeof big);
    assert_true(ckpt_begin(s, &place, NULL, 0));
    for (uint64_t i = 0; i < 100; i++) assert_true(ckpt_page(s, i * CKPT_PAGE, CKPT_BASE_ZERO, big));
    ckpt_abort(s);
    for (int i = 0; i < 8; i++) assert_true(advance(m, s));
    compare(s, m);
    ckpt_close(s);
    free_model(m);
}

/* One byte of a file is changed: whatever is read is right, or is said to be damaged. */
static void check_damaged(const char *path, off_t at, const struct model *m, int *told) {
    char why[WHY_MAX];
    uint8_t byte, wrong;
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0 && pread(fd, &byte, 1, at) == 1);
    wrong = byte ^ 0x10;
    assert_int_equal(__real_pwrite(fd, &wrong, 1, at), 1);
    struct ckpt_store *s = ckpt_open(dir, 7, why);
    *told += !s || ckpt_damage(s)[0];
    for (size_t i = 0; s && i < ckpt_count(s); i++) {
        struct ckpt_restored r;
        struct ckpt_cursor c;
        struct ckpt_info info;
        ckpt_info(s, i, &info);
        for (ckpt_pages(s, i, &c); ckpt_next(&c, &r);) {
            const struct model_page *want = &m->then[info.last * PAGES + page_at(r.address)];
            for (unsigned b = 0; b < CKPT_PAGE; b++)
                if (r.blocks >> b / CKPT_BLOCK & 1) assert_int_equal(r.bytes[b], want->bytes[b]);
        }
        *told += c.why[0] != '\0';
    }
    ckpt_close(s);
    assert_int_equal(__real_pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static void test_damage(void **state) {
    char **names, path[400], why[WHY_MAX];
    size_t n;
    int told = 0;
    struct model *m = new_model(3, 20);
    struct ckpt_store *s = ckpt_create(dir, 7, why);
    while (m->taken < 20) assert_true(advance(m, s));
    ckpt_close(s);
    assert_true(ckpt_files(dir, &names, &n, why));
    for (size_t i = 0; i < n; i++) {
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        assert_int_equal(stat(path, &st), 0);
        for (off_t at = 0; at < st.st_size; at += 1 + st.st_size / 40) check_damaged(path, at, m, &told);
        free(names[i]);
    }
    free(names);
    assert_true(told > 100);
    free_model(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_model, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_levels, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sparing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refusals, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_deaths, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failure, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_damage, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
