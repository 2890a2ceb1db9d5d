// link: src/ckpt/rt/track.c src/ckpt/rt/track_uffd.c src/ckpt/rt/track_mprotect.c src/ckpt/rt/ranges.c src/ckpt/rt/page_set.c
// link: src/ckpt/rt/save.c src/ckpt/taker.c
// link: src/ckpt/files.c src/ckpt/store.c src/ckpt/write.c src/ckpt/merge.c src/ckpt/meta.c src/ckpt/slots.c
// libs: -lxxhash -pthread
/* Modification tracking with both back ends, and the way of checkpoints from a program's memory into a store. The test is the
 * program: it writes to memory of its own, and what the tracker says is compared with what was written. The saver's work is
 * done in place. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ckpt/area.h"
#include "ckpt/rt/page_set.h"
#include "ckpt/rt/ranges.h"
#include "ckpt/rt/save.h"
#include "ckpt/rt/saver.h"
#include "ckpt/rt/track.h"
#include "ckpt/taker.h"
#include "inproc/lock.h"
#include "sphere/aspace.h"

/* ---- stand-ins for the rest of the runtime ---- */

struct lock cache_lock;
struct channel *the_channel;
int trace_level;
gaddr shared_lowest, shared_highest;
uint64_t code_watch_protected;
static gaddr code_page; /* the one that code_watch would have closed */

void shared_hold(gaddr start, size_t len) {}
bool shared_is_left(const struct mapping *m) { return false; }
void say(const char *format, ...) {}
bool channel_controller_lives(void) { return true; }
bool code_watch_is_protected(gaddr page) { return code_watch_protected && page == code_page; }
bool saver_start(void) { return true; }
void saver_do(void (*fn)(void *), void *arg) { fn(arg); }
void saver_after_fork(void) {}
bool saver_end(void) { return false; }
static bool is_whole = true;
bool borrowed_is_whole(void) { return is_whole; }
long guest_copy(void *to, const void *from, size_t n) { return memcpy(to, from, n), 0; }

void *arena_pages(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? abort(), NULL : p;
}
void arena_free_pages(void *p, size_t bytes) { munmap(p, bytes); }

static struct mapping maps[16];
static size_t n_maps;

bool aspace_nth(size_t i, struct mapping *out) {
    if (i < n_maps) *out = maps[i];
    return i < n_maps;
}
const struct mapping *aspace_next(gaddr addr) {
    for (size_t i = 0; i < n_maps; i++)
        if (maps[i].end > addr) return &maps[i];
    return NULL;
}
const struct mapping *aspace_peek(gaddr addr) {
    const struct mapping *m = aspace_next(addr);
    return m && m->start <= addr ? m : NULL;
}
bool aspace_find(gaddr addr, struct mapping *out) {
    const struct mapping *m = aspace_peek(addr);
    if (m) *out = *m;
    return m != NULL;
}
int aspace_host_prot(int prot) { return prot & ~PROT_EXEC; }

/* ---- memory of the program ---- */

#define AT(i) (0x200000000000ull + (i) * (1ull << 32))

static uint8_t *map_at(gaddr at, size_t pages, int prot, int fd) {
    void *p = mmap((void *)at, pages * PAGE_SIZE, prot, MAP_PRIVATE | MAP_FIXED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
    assert_true(p == (void *)at);
    size_t i = 0;
    while (i < n_maps && maps[i].start < at) i++;
    memmove(&maps[i + 1], &maps[i], (n_maps - i) * sizeof *maps);
    maps[i] =
        (struct mapping){.start = at, .end = at + pages * PAGE_SIZE, .prot = (uint32_t)prot, .flags = MAP_PRIVATE};
    maps[i].file.ino = fd >= 0;
    n_maps++;
    track_changed(at, at + pages * PAGE_SIZE);
    return p;
}

static void forget_all(void) {
    for (size_t i = 0; i < n_maps; i++) munmap((void *)maps[i].start, maps[i].end - maps[i].start);
    n_maps = 0;
}

static unsigned long faults;

static void on_fault(int signo, siginfo_t *info, void *context) {
    gaddr addr = (gaddr)info->si_addr;
    faults++;
    if (track_write_fault(addr)) return;
    if (code_watch_protected && PAGE_DOWN(addr) == code_page) { /* as code_watch.c does */
        code_watch_protected = 0;
        mprotect((void *)code_page, PAGE_SIZE, PROT_READ | PROT_WRITE);
        track_opened(code_page, code_page + PAGE_SIZE);
        return;
    }
    signal(SIGSEGV, SIG_DFL);
}

static struct track_set set;

static bool is_in(const struct ckpt_range *list, size_t n, const void *p) {
    for (size_t i = 0; i < n; i++)
        if (list[i].start <= (gaddr)p && (gaddr)p < list[i].end) return true;
    return false;
}

static void collect(void) {
    assert_true(track_collect(&set));
    size_t pages = 0;
    for (size_t i = 0; i < set.n_written; i++) {
        assert_true(set.written[i].start < set.written[i].end && set.written[i].start % PAGE_SIZE == 0);
        if (i) assert_true(set.written[i - 1].end < set.written[i].start);
        pages += (set.written[i].end - set.written[i].start) / PAGE_SIZE;
    }
    assert_int_equal(pages, set.n_pages);
}

#define WRITTEN(p) is_in(set.written, set.n_written, p)
#define DROPPED(p) is_in(set.dropped, set.n_dropped, p)

/* ---- both back ends ---- */

static void begin(enum track_choice choice) {
    struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &sa, NULL);
    track_wanted = choice;
    faults = 0;
    assert_true(track_start());
    assert_string_equal(track_name(), choice == TRACK_UFFD ? "uffd" : "mprotect");
}

static void end(void) {
    track_after_fork(); /* tracking is off behind it */
    assert_false(track_is_on || track_closes);
    forget_all();
    signal(SIGSEGV, SIG_DFL);
}

static void check_writes(enum track_choice choice) {
    uint8_t *p = map_at(AT(1), 100, PROT_READ | PROT_WRITE, -1);
    p[0] = 1;
    p[50 * PAGE_SIZE] = 1;
    begin(choice);
    collect();
    assert_true(WRITTEN(p) && WRITTEN(p + 50 * PAGE_SIZE) && set.n_pages == 2);
    collect();
    assert_int_equal(set.n_pages, 0);
    p[50 * PAGE_SIZE + 17]++;
    p[70 * PAGE_SIZE] = 2; /* was never there */
    uint8_t sum = p[0];
    collect();
    assert_true(!WRITTEN(p) && WRITTEN(p + 50 * PAGE_SIZE) && WRITTEN(p + 70 * PAGE_SIZE) && set.n_pages == 2 &&
                sum == 1);
    collect();
    assert_int_equal(set.n_pages, 0);
    end();
}

/* What is new, moved or emptied counts as dropped, and as written where there is something. */
static void check_changes(enum track_choice choice) {
    uint8_t *p = map_at(AT(1), 10, PROT_READ | PROT_WRITE, -1);
    memset(p, 3, 10 * PAGE_SIZE);
    begin(choice);
    collect();
    uint8_t *q = map_at(AT(3), 10, PROT_READ | PROT_WRITE, -1);
    q[5 * PAGE_SIZE] = 1;
    collect();
    assert_true(WRITTEN(q + 5 * PAGE_SIZE) && !WRITTEN(q) && DROPPED(q) && !DROPPED(p) && set.n_pages == 1);
    assert_int_equal(madvise(p + 2 * PAGE_SIZE, 2 * PAGE_SIZE, MADV_DONTNEED), 0);
    track_changed(AT(1) + 2 * PAGE_SIZE, AT(1) + 4 * PAGE_SIZE);
    collect();
    assert_true(DROPPED(p + 2 * PAGE_SIZE) && !DROPPED(p) && set.n_pages == 0);
    assert_true(mremap(p, 10 * PAGE_SIZE, 10 * PAGE_SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)AT(5)) ==
                (void *)AT(5));
    n_maps = 0;
    maps[n_maps++] = (struct mapping){.start = AT(3), .end = AT(3) + 10 * PAGE_SIZE, .prot = 3, .flags = MAP_PRIVATE};
    maps[n_maps++] = (struct mapping){.start = AT(5), .end = AT(5) + 10 * PAGE_SIZE, .prot = 3, .flags = MAP_PRIVATE};
    track_changed(AT(1), AT(1) + 10 * PAGE_SIZE);
    track_changed(AT(5), AT(5) + 10 * PAGE_SIZE);
    collect();
    assert_true(DROPPED((void *)AT(1)) && WRITTEN((void *)AT(5)) && set.n_pages == 8);
    *(uint8_t *)(AT(5) + 9 * PAGE_SIZE) = 1;
    collect();
    assert_true(WRITTEN((void *)(AT(5) + 9 * PAGE_SIZE)) && set.n_pages == 1);
    end();
}

/* Pages of a file are the file's until they are written. */
static void check_files(enum track_choice choice) {
    int fd = memfd_create("file", 0);
    assert_int_equal(ftruncate(fd, 8 * PAGE_SIZE), 0);
    uint8_t *p = map_at(AT(1), 8, PROT_READ | PROT_WRITE, fd);
    uint8_t sum = 0;
    for (size_t i = 0; i < 8; i++) sum += p[i * PAGE_SIZE];
    p[3 * PAGE_SIZE] = 1;
    begin(choice);
    collect();
    assert_true(WRITTEN(p + 3 * PAGE_SIZE) && set.n_pages == 1 && sum == 0);
    p[4 * PAGE_SIZE] = 1;
    collect();
    assert_true(WRITTEN(p + 4 * PAGE_SIZE) && set.n_pages == 1);
    close(fd);
    end();
}

/* The kernel writes, too. */
static void check_calls(enum track_choice choice) {
    uint8_t *p = map_at(AT(1), 8, PROT_READ | PROT_WRITE, -1);
    memset(p, 1, 8 * PAGE_SIZE);
    int fd[2];
    assert_true(pipe(fd) == 0 && write(fd[1], "hello", 5) == 5);
    begin(choice);
    collect();
    track_before_kernel_write((gaddr)p + 2 * PAGE_SIZE - 2, 5);
    assert_int_equal(read(fd[0], p + 2 * PAGE_SIZE - 2, 5), 5);
    collect();
    assert_true(WRITTEN(p + PAGE_SIZE) && WRITTEN(p + 2 * PAGE_SIZE) && set.n_pages == 2);
    track_before_any_kernel_write();
    assert_true(write(fd[1], "again", 5) == 5 && read(fd[0], p + 5 * PAGE_SIZE, 5) == 5);
    collect();
    assert_true(WRITTEN(p + 5 * PAGE_SIZE));
    close(fd[0]);
    close(fd[1]);
    end();
}

/* Random writes to much memory, huge pages maybe: whatever was written is in the set. */
static void check_many(enum track_choice choice) {
    const size_t pages = 40000;
    uint8_t *p = map_at(AT(1), pages, PROT_READ | PROT_WRITE, -1), *was = calloc(pages, 1);
    uint64_t random = 1;
    memset(p, 1, pages * PAGE_SIZE);
    begin(choice);
    collect();
    assert_int_equal(set.n_pages, pages);
    for (int round = 0; round < 3; round++) {
        memset(was, 0, pages);
        for (size_t k = 0; k < 12000; k++) {
            random = random * 6364136223846793005ull + 1442695040888963407ull;
            size_t i = round == 2 ? k : (random >> 33) % pages; /* one after the other, at last */
            p[i * PAGE_SIZE + k % PAGE_SIZE]++;
            was[i] = 1;
        }
        collect();
        size_t n = 0;
        for (size_t i = 0; i < set.n_written; i++)
            for (gaddr at = set.written[i].start; at < set.written[i].end; at += PAGE_SIZE) {
                n += was[(at - (gaddr)p) / PAGE_SIZE];
                was[(at - (gaddr)p) / PAGE_SIZE] = 0;
            }
        for (size_t i = 0; i < pages; i++) assert_false(was[i]);
        if (round == 2) assert_true(n == 12000 && set.n_pages <= 14000 && faults < 12000 * 2 + 200);
    }
    free(was);
    end();
}

/* In the child of a fork, tracking is off and memory is the program's. */
static void check_fork(enum track_choice choice) {
    uint8_t *p = map_at(AT(1), 8, PROT_READ | PROT_WRITE, -1);
    memset(p, 1, 8 * PAGE_SIZE);
    begin(choice);
    collect();
    pid_t child = fork();
    if (child == 0) {
        track_after_fork();
        memset(p, 2, 8 * PAGE_SIZE);
        bool fine = faults == 0 && track_start() && track_collect(&set) && set.n_pages == 8;
        p[0] = 3;
        _exit(!(fine && track_collect(&set) && set.n_pages == 1));
    }
    int status;
    assert_true(waitpid(child, &status, 0) == child && status == 0);
    p[0] = 3;
    collect();
    assert_int_equal(set.n_pages, 1);
    end();
}

#define FOR_BOTH(name)                                                         \
    static void test_##name##_uffd(void **state) { check_##name(TRACK_UFFD); } \
    static void test_##name##_mprotect(void **state) { check_##name(TRACK_MPROTECT); }
FOR_BOTH(writes)
FOR_BOTH(changes)
FOR_BOTH(files)
FOR_BOTH(calls)
FOR_BOTH(many)
FOR_BOTH(fork)

/* A page that somebody else has closed stays closed until that one opens it, and is not lost. */
static void test_closed_by_others(void **state) {
    uint8_t *p = map_at(AT(1), 8, PROT_READ | PROT_WRITE, -1);
    memset(p, 1, 8 * PAGE_SIZE);
    begin(TRACK_MPROTECT);
    code_page = (gaddr)p + 3 * PAGE_SIZE;
    collect();
    code_watch_protected = 1;
    for (size_t i = 0; i < 8; i++) p[i * PAGE_SIZE] = 2; /* a run that grows over it */
    assert_int_equal(code_watch_protected, 0);
    collect();
    assert_int_equal(set.n_pages, 8);
    end();
}

/* ---- sets and ranges ---- */

static void test_ranges(void **state) {
    struct ranges r = {.most = 0};
    ranges_add(&r, 0x3000, 0x4000);
    ranges_add(&r, 0x1000, 0x2000);
    ranges_add(&r, 0x6000, 0x8000);
    assert_int_equal(r.n, 3);
    ranges_add(&r, 0x2000, 0x3000); /* touches both */
    assert_true(r.n == 2 && r.list[0].start == 0x1000 && r.list[0].end == 0x4000);
    ranges_add(&r, 0, 0x9000);
    assert_true(r.n == 1 && ranges_hold(&r, 0x8fff) && !ranges_hold(&r, 0x9000));
    struct ranges coarse = {.most = 8};
    for (gaddr i = 0; i < 100; i++) ranges_add(&coarse, i * 0x4000, i * 0x4000 + 0x1000);
    assert_true(coarse.n <= 8);
    for (gaddr i = 0; i < 100; i++) assert_true(ranges_hold(&coarse, i * 0x4000));
}

static void test_page_set(void **state) {
    struct page_set s = {0};
    static bool is[4096];
    uint64_t random = 7;
    for (int k = 0; k < 3000; k++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        size_t from = (random >> 33) % 4096, to = from + (random >> 20) % 40;
        if (to > 4096) to = 4096;
        bool on = random >> 60 & 1;
        for (size_t i = from; i < to; i++) is[i] = on;
        (on ? page_set_add : page_set_remove)(&s, AT(1) + from * PAGE_SIZE, AT(1) + to * PAGE_SIZE);
    }
    gaddr at = AT(1), stop, end = AT(1) + 4096 * PAGE_SIZE;
    size_t i = 0;
    for (; page_set_next(&s, &at, &stop, end); at = stop) {
        for (; i < (at - AT(1)) / PAGE_SIZE; i++) assert_false(is[i]);
        for (; i < (stop - AT(1)) / PAGE_SIZE; i++) assert_true(is[i] && page_set_has(&s, AT(1) + i * PAGE_SIZE));
    }
    for (; i < 4096; i++) assert_false(is[i]);
}

/* ---- from memory to the store and back ---- */

static char dir[64];

static void compare(const struct ckpt_store *s, size_t i, const uint8_t *want, size_t pages) {
    uint8_t *got = calloc(pages, PAGE_SIZE);
    struct ckpt_restored r;
    struct ckpt_cursor c;
    for (ckpt_pages(s, i, &c); ckpt_next(&c, &r);) {
        assert_true(r.address >= AT(1) && r.address < AT(1) + pages * PAGE_SIZE);
        for (unsigned b = 0; b < CKPT_PAGE_BLOCKS; b++)
            if (r.blocks >> b & 1)
                memcpy(got + (r.address - AT(1)) + b * CKPT_BLOCK, r.bytes + b * CKPT_BLOCK, CKPT_BLOCK);
    }
    assert_string_equal(c.why, "");
    assert_memory_equal(got, want, pages * PAGE_SIZE);
    free(got);
}

static void save_some(enum track_choice choice) {
    const size_t pages = 3 * AREA_ENTRIES / 2; /* the area must be emptied while it is filled */
    const uint64_t rounds = 12;
    char why[WHY_MAX];
    uint8_t *p = map_at(AT(1), pages, PROT_READ | PROT_WRITE, -1), *copies = malloc(rounds * 64 * PAGE_SIZE);
    snprintf(dir, sizeof dir, "/tmp/ckpt-test-XXXXXX");
    assert_non_null(mkdtemp(dir));
    int fd = memfd_create("channel", 0);
    assert_int_equal(ftruncate(fd, (off_t)AREA_FILE_BYTES), 0);
    the_channel = mmap(NULL, sizeof *the_channel, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    the_channel->shares = 1;
    struct taker *taker = taker_start(the_channel, fd, dir);
    assert_non_null(taker);
    begin(choice);
    track_after_fork();
    save_interval_ms = 1000;
    save_start(fd, 5, 3);
    for (size_t i = 64; i < pages; i++) p[i * PAGE_SIZE] = (uint8_t)i;
    for (uint64_t k = 0; k < rounds; k++) {
        for (size_t i = 0; i < 64; i += 1 + k % 3) p[i * PAGE_SIZE + k * 100] = (uint8_t)(k + 1);
        memcpy(copies + k * 64 * PAGE_SIZE, p, 64 * PAGE_SIZE);
        struct ckpt_place place = {.event = k};
        is_whole = k % 4 != 2; /* such a one is put off, and the next one has all that was written */
        if (!is_whole) assert_false(save_checkpoint(&place, "state", 5, true));
        is_whole = true;
        assert_true(save_checkpoint(&place, "state", 5, true));
        assert_false(save_is_due(0));
    }
    taker_stop(taker, why);
    assert_string_equal(why, "");
    struct ckpt_store *s = ckpt_open(dir, 3, why);
    assert_non_null(s);
    assert_int_equal(ckpt_space(s).taken, rounds);
    for (size_t i = 0; i < ckpt_count(s); i++) {
        struct ckpt_info info;
        size_t len;
        assert_true(ckpt_info(s, i, &info) && memcmp(ckpt_state(s, i, &len), "state", 5) == 0 && len == 5);
        memcpy(p, copies + info.place.event * 64 * PAGE_SIZE, 64 * PAGE_SIZE); /* the rest has not changed */
        compare(s, i, p, pages);
    }
    ckpt_close(s);
    end();
    free(copies);
    munmap(the_channel, sizeof *the_channel);
    close(fd);
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

static void test_save_uffd(void **state) { save_some(TRACK_UFFD); }
static void test_save_mprotect(void **state) { save_some(TRACK_MPROTECT); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),           cmocka_unit_test(test_page_set),
        cmocka_unit_test(test_writes_uffd),      cmocka_unit_test(test_writes_mprotect),
        cmocka_unit_test(test_changes_uffd),     cmocka_unit_test(test_changes_mprotect),
        cmocka_unit_test(test_files_uffd),       cmocka_unit_test(test_files_mprotect),
        cmocka_unit_test(test_calls_uffd),       cmocka_unit_test(test_calls_mprotect),
        cmocka_unit_test(test_many_uffd),        cmocka_unit_test(test_many_mprotect),
        cmocka_unit_test(test_fork_uffd),        cmocka_unit_test(test_fork_mprotect),
        cmocka_unit_test(test_closed_by_others), cmocka_unit_test(test_save_uffd),
        cmocka_unit_test(test_save_mprotect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
