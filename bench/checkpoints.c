/* checkpoints N MS DIR -- CMD...: runs CMD natively, stops it N times, each after MS milliseconds of its CPU time, and puts what
 * has changed of its private memory into a checkpoint store in DIR. Prints a line for each checkpoint: how many there were, how
 * many are left, bytes of the store on disk, bytes that an undo log without consolidation would have taken (72 for each block
 * that changed, the store's own count), pages looked at.
 *
 * All of memory is looked at every time, so nothing depends on how modified pages are found. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ckpt/store.h"

#define MAPS_MOST 20000

struct map {
    uint64_t start, end;
    bool is_file;
};

struct maps {
    struct map list[MAPS_MOST];
    size_t n;
};

static void fail(const char *what) {
    fprintf(stderr, "checkpoints: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* Private mappings that can be written. */
static bool read_maps(pid_t pid, struct maps *m) {
    char path[64], line[4400], perms[5];
    unsigned long inode;
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *f = fopen(path, "r");
    if (!f) return false;
    m->n = 0;
    while (m->n < MAPS_MOST && fgets(line, sizeof line, f)) {
        struct map *x = &m->list[m->n];
        if (sscanf(line, "%lx-%lx %4s %*x %*s %lu", &x->start, &x->end, perms, &inode) != 4) continue;
        x->is_file = inode != 0;
        m->n += perms[0] == 'r' && perms[1] == 'w' && perms[3] == 'p' && !strstr(line, "[v");
    }
    fclose(f);
    return m->n > 0;
}

/* What of `then` is not mapped now. */
static size_t find_dropped(const struct maps *then, const struct maps *now, struct ckpt_range *out) {
    size_t n = 0;
    for (size_t i = 0, k = 0; i < then->n; i++) {
        uint64_t at = then->list[i].start, end = then->list[i].end;
        while (at < end) {
            while (k < now->n && now->list[k].end <= at) k++;
            uint64_t next = k < now->n && now->list[k].start < end ? now->list[k].start : end;
            if (next > at) out[n++] = (struct ckpt_range){at, next};
            at = next < end ? now->list[k].end : end;
        }
    }
    return n;
}

static size_t save_map(struct ckpt_store *s, const struct map *m, int mem, int pagemap) {
    static uint8_t page[CKPT_PAGE];
    uint64_t words[512];
    size_t pages = 0;
    for (uint64_t at = m->start; at < m->end;) {
        size_t n = (m->end - at) / CKPT_PAGE < 512 ? (m->end - at) / CKPT_PAGE : 512;
        if (pread(pagemap, words, n * 8, (off_t)(at / CKPT_PAGE * 8)) != (ssize_t)(n * 8)) return pages;
        for (size_t i = 0; i < n; i++, at += CKPT_PAGE) {
            bool is_there = words[i] >> 62 && !(words[i] >> 61 & 1); /* and not the file's own */
            if (!is_there || pread(mem, page, sizeof page, (off_t)at) != sizeof page) continue;
            pages++;
            if (!ckpt_page(s, at, m->is_file ? CKPT_BASE_FILE : CKPT_BASE_ZERO, page)) fail(ckpt_error(s));
        }
    }
    return pages;
}

static size_t save(struct ckpt_store *s, pid_t pid, uint64_t number) {
    static struct maps maps[2];
    static struct ckpt_range dropped[2 * MAPS_MOST];
    char path[64];
    struct maps *now = &maps[number % 2];
    struct ckpt_place place = {.event = number};
    size_t pages = 0;
    if (!read_maps(pid, now)) fail("maps");
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    int mem = open(path, O_RDONLY);
    snprintf(path, sizeof path, "/proc/%d/pagemap", pid);
    int pagemap = open(path, O_RDONLY);
    if (mem < 0 || pagemap < 0) fail(path);
    size_t n = find_dropped(&maps[!(number % 2)], now, dropped);
    if (!ckpt_begin(s, &place, dropped, n)) fail(ckpt_error(s));
    for (size_t i = 0; i < now->n; i++) pages += save_map(s, &now->list[i], mem, pagemap);
    if (!ckpt_commit(s, "", 0)) fail(ckpt_error(s));
    close(mem);
    close(pagemap);
    return pages;
}

/* False: it has ended. */
static bool run_for(pid_t pid, clockid_t clock, uint64_t ms) {
    struct timespec t;
    int status;
    clock_gettime(clock, &t);
    uint64_t until = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec + ms * 1000000;
    kill(pid, SIGCONT);
    for (;;) {
        const struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
        if (waitpid(pid, &status, WNOHANG) > 0 && (WIFEXITED(status) || WIFSIGNALED(status))) return false;
        if (clock_gettime(clock, &t) == 0 && (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec >= until) break;
    }
    kill(pid, SIGSTOP);
    return waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status);
}

int main(int argc, char **argv) {
    char why[WHY_MAX];
    if (argc < 6) return fprintf(stderr, "usage: checkpoints N MS DIR -- CMD...\n"), 2;
    uint64_t most = strtoull(argv[1], NULL, 10), ms = strtoull(argv[2], NULL, 10);
    struct ckpt_store *s = ckpt_create(argv[3], 0, why);
    if (!s) return fprintf(stderr, "checkpoints: %s\n", why), 1;
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY); /* our own lines go to standard output */
        if (null >= 0) dup2(null, 1);
        execvp(argv[5], argv + 5);
        _exit(127);
    }
    clockid_t clock;
    if (clock_getcpuclockid(pid, &clock) != 0) fail("clock");
    for (uint64_t i = 0; i < most && run_for(pid, clock, ms); i++) {
        size_t pages = save(s, pid, i);
        struct ckpt_space space = ckpt_space(s);
        printf("%lu %zu %lu %lu %zu\n", i + 1, ckpt_count(s), space.data + space.meta, space.unconsolidated, pages);
        fflush(stdout);
    }
    kill(pid, SIGKILL);
    ckpt_close(s);
    return 0;
}
