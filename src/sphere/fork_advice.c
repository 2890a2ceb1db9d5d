#include "sphere/fork_advice.h"

#include <linux/fcntl.h>
#include <linux/mman.h>

#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "log/snapshot.h"
#include "sphere/aspace.h"
#include "sphere/sys/special.h"

#define LINE_MAX_ 512

static bool is_used;
static struct snapshot_advice ranges[SNAPSHOT_ADVICE_MAX];
static uint32_t n_ranges;

void fork_advice_begin(void) { is_used = true; }

static uint64_t hex(const char **s) {
    uint64_t v = 0;
    for (;; ++*s) {
        char c = **s;
        if (c >= '0' && c <= '9')
            v = v * 16 + (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            v = v * 16 + (uint64_t)(c - 'a' + 10);
        else
            return v;
    }
}

static void add(struct snapshot_advice at, uint64_t advice) {
    CHECK(n_ranges < SNAPSHOT_ADVICE_MAX);
    at.advice = advice;
    ranges[n_ranges++] = at;
}

/* A line of smaps: "start-end rwxp ..." begins a mapping, "VmFlags: rd wr dc ..." ends what is said of it. */
static void take_line(const char *line, struct snapshot_advice *at) {
    static const char flags[] = "VmFlags:";
    if (strncmp(line, flags, sizeof flags - 1) == 0) {
        for (const char *s = line + sizeof flags - 1; s[0] == ' ' && s[1] && s[2]; s += 3) {
            if (s[1] == 'd' && s[2] == 'c') add(*at, MADV_DONTFORK);
            if (s[1] == 'w' && s[2] == 'f') add(*at, MADV_WIPEONFORK);
        }
    } else if ((line[0] >= '0' && line[0] <= '9') || (line[0] >= 'a' && line[0] <= 'f')) {
        const char *s = line;
        at->start = hex(&s);
        at->end = *s == '-' ? (s++, hex(&s)) : at->start;
    }
}

/* The kernel knows best: mappings come, go and are split. */
static void find_ranges(void) {
    static char buffer[4096], line[LINE_MAX_];
    struct snapshot_advice at = {0, 0, 0};
    size_t len = 0;
    n_ranges = 0;
    long fd = SYS(openat, AT_FDCWD, "/proc/self/smaps", O_RDONLY | O_CLOEXEC), n;
    if (fd < 0) return;
    while ((n = SYS(read, fd, buffer, sizeof buffer)) > 0)
        for (long i = 0; i < n; i++) {
            if (buffer[i] != '\n') {
                if (len < sizeof line - 1) line[len++] = buffer[i];
                continue;
            }
            line[len] = '\0';
            len = 0;
            take_line(line, &at);
        }
    SYS(close, fd);
}

static void advise(const struct snapshot_advice *r, uint64_t advice) {
    SYS(madvise, r->start, r->end - r->start, advice);
}

void fork_advice_lift(void) {
    if (!is_used) return;
    find_ranges();
    for (uint32_t i = 0; i < n_ranges; i++)
        advise(&ranges[i], ranges[i].advice == MADV_DONTFORK ? MADV_DOFORK : MADV_KEEPONFORK);
}

void fork_advice_put_back(void) {
    for (uint32_t i = 0; is_used && i < n_ranges; i++) advise(&ranges[i], ranges[i].advice);
}

void fork_advice_inherit(void) {
    if (!is_used) return;
    find_ranges();
    for (uint32_t i = 0; i < n_ranges; i++) {
        if (ranges[i].advice == MADV_DONTFORK)
            SYS(munmap, ranges[i].start, ranges[i].end - ranges[i].start);
        else
            advise(&ranges[i], MADV_DONTNEED);
    }
}

size_t fork_advice_list(const struct snapshot_advice **list) {
    struct mapping m;
    n_ranges = 0;
    if (is_used) find_ranges();
    for (size_t i = 0; aspace_nth(i, &m); i++)
        if (unlikely(m.guarded)) add((struct snapshot_advice){m.start, m.end, 0}, ADVICE_GUARD_INSTALL);
    *list = ranges;
    return n_ranges;
}

void fork_advice_restore(const struct snapshot_advice *list, size_t n) {
    for (size_t i = 0; i < n; i++) {
        advise(&list[i], list[i].advice);
        if (list[i].advice == ADVICE_GUARD_INSTALL)
            aspace_guard(list[i].start, list[i].end, true);
        else
            fork_advice_begin();
    }
}
